import { connect } from "node:net"

const lineEnd = "\r\n"

/**
 * The part of the NATS protocol that publishing to a stream needs, on a plain socket. Generating
 * the load must cost almost nothing compared with what is measured. Any reply that is no
 * acknowledgement ends the process.
 */
export const connectNats = async (url: string, acknowledged: () => void) => {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.setNoDelay(true)
  const inbox = `_INBOX.bench${process.pid}`
  let text = ""
  const failed = (what: string): never => {
    throw new Error(`the broker does not take what is published: ${what}`)
  }
  const ready = new Promise<void>((resolve, reject) => {
    socket.once("error", reject)
    /** Returns true if a complete line was at the beginning, and removes it. */
    const line = (): boolean => {
      const end = text.indexOf(lineEnd)
      if (end === -1) return false
      const said = text.slice(0, end)
      let next = end + lineEnd.length
      if (said.startsWith("MSG ")) {
        const size = Number(said.slice(said.lastIndexOf(" ") + 1))
        const payload = text.slice(next, next + size)
        next += size + lineEnd.length
        if (text.length < next) return false
        if (payload.includes('"error"')) failed(payload)
        acknowledged()
      } else if (said === "PING") socket.write(`PONG${lineEnd}`)
      else if (said === "PONG") resolve()
      else if (said.startsWith("-ERR")) failed(said)
      else if (said.startsWith("HMSG")) failed("no stream takes the subject")
      text = text.slice(next)
      return true
    }
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1")
      while (line());
    })
  })
  const options = { verbose: false, pedantic: false, headers: true, no_responders: true }
  socket.write(`CONNECT ${JSON.stringify({ ...options, lang: "bench", version: "1" })}${lineEnd}`)
  socket.write(`SUB ${inbox}.* 1${lineEnd}PING${lineEnd}`)
  await ready
  return {
    /**
     * The body is passed in two parts, so that only the part that differs is created for each
     * message. The second part ends the message.
     */
    publish: (subject: string, id: string, begin: string, rest: Buffer): void => {
      const headers = `NATS/1.0${lineEnd}Nats-Msg-Id: ${id}${lineEnd}${lineEnd}`
      const total = headers.length + begin.length + rest.length - lineEnd.length
      socket.write(
        `HPUB ${subject} ${inbox}.a ${headers.length} ${total}${lineEnd}${headers}${begin}`,
        "latin1"
      )
      socket.write(rest)
    },
    /** Writes everything published by the callback at once. */
    together: (publish: () => void): void => {
      socket.cork()
      publish()
      socket.uncork()
    },
    close: () => socket.destroy()
  }
}
