import { once } from "node:events"
import type { Socket } from "node:net"
import { connect, createServer } from "node:net"
import { Effect } from "effect"

/** A way to a server on this machine that can be cut off, or be long. */
export interface TcpProxy {
  readonly port: number
  /** Ends all connections through it, and takes no more until it is joined again. */
  readonly cut: Effect.Effect<void>
  readonly join: Effect.Effect<void>
  /** Keeps back what clients send, as a network that loses packets does; the connections stay open. */
  readonly hold: Effect.Effect<void>
  /** Lets through what was kept back, in its order. */
  readonly release: Effect.Effect<void>
  /** Lets all that comes from now on take so many ms each way: half of a round trip. */
  readonly delay: (ms: number) => Effect.Effect<void>
}

/** Passes on what one socket says to the other, each piece when it has been under way long enough and is not kept back. */
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
        /** Goes on with what each socket says. */
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
