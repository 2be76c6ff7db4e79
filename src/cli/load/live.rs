//! The line that is shown while a load goes on, on a terminal alone.
//!
//! It is drawn when it is asked for and at no other time: no thread and no tick beside the generator's.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::load::{Options, Progress, Second, Stop};
use crate::units::show;

/// The line, if it is shown.
pub(super) struct Live {
    bar: ProgressBar,
    stop: Stop,
}

impl Live {
    /// None.
    pub(super) fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), stop: Stop::Count(1) }
    }

    /// One of a load with these options, on stderr.
    pub(super) fn new(options: &Options) -> Self {
        let length = match options.stop {
            Stop::Duration(duration) => duration.as_millis() as u64,
            Stop::Count(count) => count,
        };
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        // The template is fixed: a wrong one would show at once, and the default one does no harm.
        let style = ProgressStyle::with_template("{bar:20} {wide_msg}");
        Self { bar: style.map_or(bar.clone(), |style| bar.with_style(style)), stop: options.stop }
    }

    /// Whether anything is seen of it.
    pub(super) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Draws how far the load has come; rates and latencies are those of its last whole second.
    pub(super) fn draw(&self, progress: &Progress, second: Option<Second>) {
        if progress.opening {
            self.bar.set_message("connecting");
            return;
        }
        let ended = progress.ok + progress.errors;
        let (position, far) = match self.stop {
            Stop::Duration(duration) => {
                let so_far = Duration::from_secs(progress.elapsed.as_secs());
                let far = format!("{} of {}", span(so_far), span(duration));
                (progress.elapsed.as_millis() as u64, far)
            }
            Stop::Count(count) => (ended, format!("{} of {}", show::count(ended), show::count(count))),
        };
        let mut parts = vec![far];
        if let Some(second) = second {
            parts.push(show::value("1/s", second.ok as f64 / second.length.as_secs_f64()));
            let times = [("p50", second.p50), ("p99", second.p99), ("max", second.max)];
            let known = times.into_iter().filter_map(|(name, time)| Some((name, time?)));
            parts.extend(known.map(|(name, time)| format!("{name} {}", show::value("s", time as f64 / 1e9))));
        }
        if progress.errors > 0 {
            parts.push(format!("{} errors", show::count(progress.errors)));
        }
        self.bar.set_position(position);
        self.bar.set_message(parts.join(" · "));
    }

    /// Takes the line away.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn span(time: Duration) -> String {
    show::span(time.as_secs_f64())
}
