import { once } from "node:events"
import type { Socket } from "node:net"
import { connect, createServer } from "node:net"
import { Effect } from "effect"

/** A proxy to a server on this machine whose connection can be cut or delayed. */
export interface TcpProxy {
  readonly port: number
  /** Closes all connections, and accepts no more until `join`. */
  readonly cut: Effect.Effect<void>
  readonly join: Effect.Effect<void>
  /** Withholds what clients send, like a network that loses packets. The connections stay open. */
  readonly hold: Effect.Effect<void>
  /** Forwards what was withheld, in order. */
  readonly release: Effect.Effect<void>
  /** Delays all subsequent data by `ms` each way: half of a round trip. */
  readonly delay: (ms: number) => Effect.Effect<void>
}

/**
 * Forwards the data of one socket to the other. Each piece waits for its delay, and while it is
 * withheld.
 */
const passOn = (one: Socket, other: Socket, delay: () => number, isHeld: () => boolean) => {
  const underWay: Array<{ readonly at: number; readonly piece: Buffer | undefined }> = []
  const arrive = () => {
    const [next] = underWay
    if (next === undefined || isHeld()) return
    const rest = next.at - performance.now()
    if (rest > 0) {
      setTimeout(arrive, Math.ceil(rest))
      return
    }
    underWay.shift()
    if (next.piece === undefined) other.end()
    else other.write(next.piece)
    arrive()
  }
  const setOut = (piece: Buffer | undefined) => {
    underWay.push({ at: performance.now() + delay(), piece })
    if (underWay.length === 1) arrive()
  }
  one.on("data", setOut)
  one.on("end", () => setOut(undefined))
  return arrive
}

/** @param to the server's port. */
export const tcpProxy = (to: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        let isOpen = true
        let ms = 0
        const sockets = new Set<Socket>()
        /** Resumes forwarding on each socket. */
        const arrivals = new Set<() => void>()
        let isHeld = false
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
            const isKept = () => isHeld && one !== onward
            arrivals.add(passOn(one, other, () => ms, isKept))
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
        const delay = (each: number) =>
          Effect.sync(() => {
            ms = each
          })
        const proxy: TcpProxy = {
          port: address.port,
          cut: set(false),
          join: set(true),
          delay,
          hold: Effect.sync(() => {
            isHeld = true
          }),
          release: Effect.sync(() => {
            isHeld = false
            for (const arrive of arrivals) arrive()
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
