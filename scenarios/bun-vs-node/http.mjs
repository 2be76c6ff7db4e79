// GET /json on node:http.
import { createServer } from 'node:http'

createServer((request, response) => {
  if (request.method === 'GET' && request.url.split('?', 1)[0] === '/json') {
    response.setHeader('Content-Type', 'application/json; charset=utf-8')
    response.end(JSON.stringify({ message: 'hello', ok: true }))
  } else {
    response.statusCode = 404
    response.end()
  }
}).listen(Number(process.env.PORT), '127.0.0.1')
