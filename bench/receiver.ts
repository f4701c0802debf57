/*
 * Answers every POST with 200 at once, and counts. A few lines of HTTP on a socket instead of a
 * server: it must take less of the machine than what is measured against it.
 */
import { createServer } from "node:net"

const answer = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
const headEnd = Buffer.from("\r\n\r\n")
const lengthField = /\r\ncontent-length: (\d+)/i

let requests = 0
let first = 0
let last = 0

const server = createServer({ noDelay: true }, (socket) => {
  let rest: Buffer = Buffer.alloc(0)
  let missing = 0
  socket.on("error", () => undefined)
  socket.on("data", (chunk: Buffer) => {
    let data: Buffer = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let answers = 0
    while (data.length > 0) {
      if (missing > 0) {
        const taken = Math.min(missing, data.length)
        missing -= taken
        data = data.subarray(taken)
        if (missing === 0) answers++
        continue
      }
      const end = data.indexOf(headEnd)
      if (end === -1) break
      const length = Number(lengthField.exec(data.toString("latin1", 0, end))?.[1] ?? 0)
      data = data.subarray(end + headEnd.length)
      if (length === 0) answers++
      else missing = length
    }
    rest = data
    if (answers === 0) return
    const now = performance.timeOrigin + performance.now()
    if (requests === 0) first = now
    last = now
    requests += answers
    for (let i = 0; i < answers; i++) socket.write(answer)
  })
})

process.on("message", (message) => {
  if (message === "reset") requests = 0
  const { system, user } = process.cpuUsage()
  process.send?.({ requests, first, last, cpu: system + user })
})
process.once("disconnect", () => process.exit(0))
server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  process.send?.({ port: typeof address === "object" ? address?.port : 0 })
})
