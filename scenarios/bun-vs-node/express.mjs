// GET /json on Express, with its defaults.
import express from 'express'

const app = express()
app.get('/json', (request, response) => {
  response.json({ message: 'hello', ok: true })
})
app.listen(Number(process.env.PORT), '127.0.0.1')
