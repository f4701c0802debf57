import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { keepGoing } from "../broker/keep-going.ts"
import { clockOf } from "../broker/kept-since.ts"
import { parseEventSubject } from "../domain/event.ts"
import { Directory } from "../endpoints/directory.ts"
import type { FloodView } from "../policy/bypass.ts"
import { floodStep, floodTenants, isPast } from "../policy/bypass.ts"
import { timers } from "../time/timers.ts"
import type { StoredBypass } from "./bypass-store.ts"
import { announceBypass, makeBypassConsumer, readBypass, writeBypass } from "./bypass-store.ts"

/** Pause between two looks, ms. */
const lookEveryMs = 2_000
/** Events that are read to learn whose they are. */
const sampleSize = 32
/** Pause before a bypass is announced again where one could not be opened, ms. */
const abandonedPauseMs = 10 * 60_000
/** Deliveries to routers, of which the broker may have forgotten the last ones at most. */
const forgottenAtMost = 256
/** Pause before it is asked again whose events wait, ms. */
const sampleEveryMs = 10_000

/** Reads whose events wait for routers: of some, at equal distances, one tenant each. */
const readSample = Effect.fnUntraced(function* (after: number, last: number) {
  const { names, readMessage } = yield* Broker
  const seqs = Array.from({ length: sampleSize }, (_, index) =>
    Math.ceil(after + ((last - after) * (index + 1)) / sampleSize)
  )
  const found = yield* Effect.forEach(seqs, (seq) =>
    readMessage("look whose events wait", names.events, { seq })
  )
  return found.flatMap((event) => {
    const tenant = event === null ? undefined : parseEventSubject(event.subject, names).tenant
    return tenant === undefined ? [] : [tenant]
  })
})

/**
 * Lets the events of other tenants pass a flood, for as long as the scope lives and this worker is
 * the one to do it.
 *
 * @param ackWait ms
 * @param holds true while it is.
 */
export const keepBypass = Effect.fnUntraced(function* (ackWait: number, holds: () => boolean) {
  const { consumerInfo, names, streamInfo } = yield* Broker
  const directory = yield* Directory
  // By the clock that never seems to have run faster: others must have had the time to read it.
  let seen = { what: "", at: 0 }
  let lastThen: number | undefined
  let sampledAt = Number.NEGATIVE_INFINITY

  const announce = Effect.fnUntraced(function* (stored: StoredBypass, after: number, last: number) {
    if (timers.monotonicMs() - sampledAt < sampleEveryMs) return
    sampledAt = timers.monotonicMs()
    const sample = yield* readSample(after, last)
    const tenants = floodTenants(sample, directory.tenants())
    if (tenants.passing.length === 0) return
    yield* announceBypass(stored, tenants)
    yield* Effect.logInfo("events come faster than they are routed; those of other tenants pass", {
      waiting: last - after,
      of: tenants.flooding.join(", "),
      passing: tenants.passing.length
    })
  })

  const open = Effect.fnUntraced(function* (stored: StoredBypass, delivered: number) {
    if (stored.bypass === undefined) return
    // A broker that was killed forgets what it delivered last.
    const from = yield* makeBypassConsumer(stored.bypass, delivered + forgottenAtMost + 1, ackWait)
    yield* writeBypass(stored, "open", from)
  })

  const look = Effect.gen(function* () {
    if (!holds()) return
    const stored = yield* readBypass
    if (stored.bypass === undefined && directory.tenantCount() < 2) return
    const router = yield* consumerInfo("look at the router", names.events, names.routerConsumer)
    const events = yield* streamInfo("look at the events", names.events)
    // A broker that lost the end of the bucket gives revisions again.
    const what = `${stored.revision} ${stored.bypass?.consumer}`
    if (what !== seen.what) {
      seen = { what, at: timers.monotonicMs() }
      lastThen = undefined
    }
    const brokerMs = clockOf(events)
    if (isPast({ bypass: stored.bypass, brokerMs })) lastThen ??= events.state.last_seq
    const view: FloodView = {
      ...{ bypass: stored.bypass, brokerMs, lastThen },
      seenForMs: timers.monotonicMs() - seen.at,
      waiting: router.num_pending,
      routedTo: router.ack_floor.stream_seq
    }
    switch (floodStep(view)) {
      case "none":
        return
      case "sample":
        return yield* announce(stored, router.delivered.stream_seq, events.state.last_seq)
      case "open":
        return yield* open(stored, router.delivered.stream_seq)
      case "close":
        yield* writeBypass(stored, "closing")
        return yield* Effect.logInfo("routing has caught up; all events go one way again soon")
      case "end":
        yield* writeBypass(stored, "none")
        if (stored.bypass?.from !== undefined) return
        sampledAt = timers.monotonicMs() + abandonedPauseMs
        return yield* Effect.logWarning("events cannot pass the flood; all wait in their order")
    }
  })
  return yield* keepGoing(
    "let events pass a flood",
    Effect.andThen(look, Effect.sleep(lookEveryMs)),
    lookEveryMs,
    Effect.logWarning
  )
})
