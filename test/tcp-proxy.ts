import { once } from "node:events"
import type { Socket } from "node:net"
import { connect, createServer } from "node:net"
import { Effect } from "effect"

/** A way to a server on this machine that can be cut off. */
export interface TcpProxy {
  readonly port: number
  /** Ends all connections through it, and takes no more until it is joined again. */
  readonly cut: Effect.Effect<void>
  readonly join: Effect.Effect<void>
}

/** @param to the server's port. */
export const tcpProxy = (to: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        let isOpen = true
        const sockets = new Set<Socket>()
        const hangUp = () => {
          for (const socket of sockets) socket.destroy()
        }
        const server = createServer((from) => {
          const onward = connect(to, "127.0.0.1")
          for (const [one, other] of [
            [from, onward],
            [onward, from]
          ] as const) {
            sockets.add(one)
            one.on("error", () => other.destroy())
            one.on("close", () => {
              sockets.delete(one)
              other.destroy()
            })
            one.pipe(other)
          }
          if (!isOpen) hangUp()
        }).listen(0, "127.0.0.1")
        await once(server, "listening")
        const address = server.address()
        if (address === null || typeof address === "string") throw new Error("it has no port")
        const set = (open: boolean) =>
          Effect.sync(() => {
            isOpen = open
            if (!open) hangUp()
          })
        const proxy: TcpProxy = { port: address.port, cut: set(false), join: set(true) }
        return { proxy, server, cut: set(false) }
      }),
      ({ cut, server }) =>
        Effect.andThen(
          cut,
          Effect.sync(() => server.close())
        )
    ),
    ({ proxy }) => proxy
  )
