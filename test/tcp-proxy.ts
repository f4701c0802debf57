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
  /** Keeps back what clients send, as a network that loses packets does; the connections stay open. */
  readonly hold: Effect.Effect<void>
  /** Lets through what was kept back, in its order. */
  readonly release: Effect.Effect<void>
}

/** @param to the server's port. */
export const tcpProxy = (to: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        let isOpen = true
        const sockets = new Set<Socket>()
        const senders = new Map<Socket, Socket>()
        let isHeld = false
        const hangUp = () => {
          for (const socket of sockets) socket.destroy()
        }
        const server = createServer((from) => {
          const onward = connect(to, "127.0.0.1")
          senders.set(from, onward)
          from.on("close", () => senders.delete(from))
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
            if (one === onward || !isHeld) one.pipe(other)
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
        const proxy: TcpProxy = {
          port: address.port,
          cut: set(false),
          join: set(true),
          hold: Effect.sync(() => {
            isHeld = true
            for (const [from, onward] of senders) from.unpipe(onward).pause()
          }),
          release: Effect.sync(() => {
            isHeld = false
            for (const [from, onward] of senders) from.pipe(onward)
          })
        }
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
