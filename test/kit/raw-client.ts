import { connect, type Socket } from "node:net"
import { Effect } from "effect"

/** A connection to a server, by which a test sends what it wants, and as slowly as it wants. */
export interface RawClient {
  readonly send: (text: string | Uint8Array) => void
  /** All that was heard. */
  readonly heard: () => string
  /** False once the server has destroyed the connection, or refused it. */
  readonly isOpen: () => boolean
  /** Waits until the connection has closed, or the server has ended its half. */
  readonly closed: Effect.Effect<void>
  /** Ends the connection. */
  readonly leave: () => void
}

/**
 * Connects to a server. The connection ends with the scope, and never by itself where the server has
 * ended its half only.
 *
 * @param from the client's own address. (Default: 127.0.0.1)
 */
export const rawClient = (url: string, from = "127.0.0.1") =>
  Effect.acquireRelease(
    Effect.callback<{ readonly client: RawClient; readonly socket: Socket }>((resume) => {
      const { hostname: host, port } = new URL(url)
      let text = ""
      let open = true
      const socket = connect({ host, port: Number(port), localAddress: from, allowHalfOpen: true })
      const client: RawClient = {
        send: (said) => socket.write(said),
        heard: () => text,
        isOpen: () => {
          // A server that has destroyed its end answers what is still sent with a reset.
          if (open && socket.writable) socket.write(" ")
          return open
        },
        closed: Effect.callback((resume) => {
          if (!open || socket.readableEnded) return resume(Effect.void)
          for (const event of ["end", "close"]) socket.once(event, () => resume(Effect.void))
        }),
        leave: () => socket.destroy()
      }
      socket.on("connect", () => resume(Effect.succeed({ client, socket })))
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1")
      })
      const gone = () => {
        open = false
      }
      socket.on("error", () => resume(Effect.succeed({ client, socket }))).on("close", gone)
    }),
    ({ socket }) => Effect.sync(() => socket.destroy())
  ).pipe(Effect.map(({ client }) => client))

/** Returns the head of a request, and the empty line after it. */
export const head = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string | number>> = {}
): string =>
  [
    `${method} ${path} HTTP/1.1`,
    "host: 127.0.0.1",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "",
    ""
  ].join("\r\n")
