import { Effect } from "effect"
import { Metrics } from "../metrics/worker-metrics.ts"
import { watchBypass } from "./bypass-watch.ts"
import type { EventWay } from "./event-way.ts"
import { bypassWay, mainWay } from "./event-way.ts"
import type { RouterOptions, RouterParts } from "./router.ts"
import { makeParts, Router } from "./router.ts"
import { makeRoutingServices } from "./routing-services.ts"

/** How often it is looked whether there is a bypass, ms. */
const bypassPollMs = 250
/** Share of a router's memory that the router of a bypass may use besides. */
const bypassShare = 1 / 4

/**
 * Turns events into deliveries until the worker stops; then finishes the events that it has begun.
 *
 * For each event, the router stores the plan as a `routed` fact. Each delivery is then attempted
 * directly where this worker can do so promptly, stored in its endpoint's backlog where it must
 * wait there, or stored in its partition's queue. Then the router acknowledges the event. A worker
 * that takes over in between follows the stored plan.
 *
 * While a tenant's flood waits, a second router takes the events of others that pass by it.
 */
export const runRouter = Effect.fnUntraced(function* (options: RouterOptions) {
  const { ackWait } = options.layout
  const services = yield* makeRoutingServices(options)
  const metrics = yield* Metrics
  const watch = yield* watchBypass
  const running = new Set<RouterParts>()
  metrics.largeEvents = () => sumOf(running, ({ large }) => large.size())
  metrics.heldEvents = () => sumOf(running, ({ held }) => held.size)

  const run = Effect.fnUntraced(function* (options: RouterOptions, way: EventWay) {
    const parts = yield* makeParts(options, services, way)
    const stop = watch.onLost(parts.partial.forget)
    running.add(parts)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        running.delete(parts)
        stop()
      })
    )
    yield* new Router(options, parts).run
  }, Effect.scoped)

  const runBypass = Effect.suspend(() => {
    const bypass = watch.bypass()
    if (bypass?.from === undefined) return Effect.sleep(bypassPollMs)
    const isOver = () => watch.bypass()?.consumer !== bypass.consumer
    const share = {
      prefetchBytes: Math.floor(options.prefetchBytes * bypassShare),
      directBytes: Math.floor(options.directBytes * bypassShare),
      stopping: () => options.stopping() || isOver()
    }
    return run({ ...options, ...share }, bypassWay(bypass, ackWait, watch))
  })
  const bypasses = Effect.whileLoop({
    while: () => !options.stopping(),
    body: () => runBypass,
    step: () => undefined
  })
  yield* Effect.all([run(options, mainWay(services.broker.names, ackWait, watch)), bypasses], {
    concurrency: "unbounded",
    discard: true
  })
})

const sumOf = <A>(all: Iterable<A>, numberOf: (one: A) => number): number => {
  let sum = 0
  for (const one of all) sum += numberOf(one)
  return sum
}
