// GET /json on Bun.serve.
const headers = { 'Content-Type': 'application/json; charset=utf-8' }

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(process.env.PORT),
  fetch(request) {
    if (request.method === 'GET' && new URL(request.url).pathname === '/json') {
      return new Response(JSON.stringify({ message: 'hello', ok: true }), { headers })
    }
    return new Response(null, { status: 404 })
  },
})
