import { Clock, Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import { firstRound } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import { nobody } from "../../domain/token.ts"
import type { RoundAt } from "../fact-record.ts"
import { raisedName } from "../fact-record.ts"
import { Facts } from "../facts.ts"
import { examine } from "./audit.ts"
import { openReading } from "./audit-reading.ts"
import { type Judgement, judge } from "./judgement.ts"
import type { AuditProblem } from "./problem.ts"
import { type AuditRange, type AuditReach, readReach } from "./reach.ts"

/** A delivery or an event that should have ended long ago, as the `missing` fact names it. */
export interface Raised {
  readonly tenant: string
  /** `_` for an event that was routed to no endpoint. */
  readonly endpoint: string
  readonly event: string
  readonly eventSeq: number
  readonly round?: string
  readonly reason: string
}

interface WatchListener<E, R> {
  readonly raised: (raised: Raised) => Effect.Effect<void, E, R>
  /** Called when a look failed; the next one follows. */
  readonly failed: (why: string) => Effect.Effect<void>
  /** Called after each look. */
  readonly looked: (found: {
    readonly verdict: Judgement["verdict"]
    readonly pending: number
    readonly problems: number
    /** What the broker has lost since it was read, which no audit that begins later can see. */
    readonly lost: string | undefined
  }) => Effect.Effect<void, never, Broker>
}

const raisable: ReadonlySet<string> = new Set([
  ...["missing", "overdue", "unrouted", "plan-incomplete", "event-lost"]
])

const aboutOf = ({ endpoint, eventSeq, round, tenant }: AuditProblem): RoundAt => ({
  tenant: tenant ?? nobody,
  endpoint: endpoint ?? nobody,
  eventSeq: eventSeq ?? 0,
  round: round ?? firstRound
})

const raisedOf = (problem: AuditProblem): Raised => {
  const { round: _, ...about } = aboutOf(problem)
  const { event = `evt_${about.eventSeq}`, round, says } = problem
  return { ...about, event, ...(round === undefined ? {} : { round }), reason: says }
}

const factOf = (
  { endpoint, event, eventSeq, round, ...raised }: Raised,
  eventAt: number,
  at: number
): Fact => ({
  v: 1,
  kind: "missing",
  at,
  ...raised,
  endpoint,
  event,
  eventSeq,
  eventAt,
  ...(endpoint === nobody ? {} : { delivery: `${event}.${endpoint}` }),
  ...(round === undefined ? {} : { round }),
  worker: "audit"
})

/**
 * Audits continuously: reads what was stored since the last look, at an interval (ms). Appends a
 * `missing` fact for each delivery that should have ended and each event that the router has finished
 * without a plan, once even if several audits watch, so that subscribers to failures receive it. If the broker loses the
 * end of a stream that was read, everything is read anew.
 */
export const watch = <E, R>(range: AuditRange, every: number, listener: WatchListener<E, R>) =>
  Effect.gen(function* () {
    const facts = yield* Facts
    let reading = yield* openReading(yield* readReach(range))
    let lost: string | undefined
    // What the router has not finished is stored and will be routed: nothing is missing, and the status
    // says what it waits for.
    const isNew = (problem: AuditProblem, { routerFloor }: AuditReach) =>
      raisable.has(problem.kind) &&
      !(problem.kind === "overdue" && (problem.eventSeq ?? 0) > routerFloor) &&
      !reading.ledger.raised.has(raisedName(aboutOf(problem)))
    // A look that fails keeps what it has read: the next one continues from there.
    const look = Effect.gen(function* () {
      const reach = yield* readReach(range)
      const { firstEvent, isWhole } = reading.ledger.scope
      // No upper bound: a fact is read once, but its event may only be read by the next look.
      const lastEvent = Number.POSITIVE_INFINITY
      reading.ledger.scope = { ...reach.scope, firstEvent, lastEvent, isWhole }
      // Problems that are recorded already must not fill the list.
      return yield* judge(reading, yield* examine(reading, reach), (problem) =>
        isNew(problem, reach)
      )
    }).pipe(
      Effect.catchTag(
        "EndLost",
        Effect.fnUntraced(function* (error) {
          yield* listener.failed(error.message)
          reading = yield* openReading(yield* readReach(range))
          reading.objections.push(error.problem)
          lost = error.says
          return undefined
        })
      ),
      Effect.catchTags({
        BrokerError: ({ message }) => Effect.as(listener.failed(message), undefined),
        TopologyError: ({ message }) => Effect.as(listener.failed(message), undefined)
      })
    )
    const raise = Effect.fnUntraced(function* (problem: AuditProblem) {
      const raised = raisedOf(problem)
      const name = raisedName(aboutOf(problem))
      const at = yield* Clock.currentTimeMillis
      const eventAt = reading.ledger.times.of(raised.eventSeq)
      yield* facts.append(factOf(raised, eventAt, at), `missing.${eventAt}.${name}`)
      reading.ledger.raised.add(name)
      yield* listener.raised(raised)
    })
    while (true) {
      const found = yield* look
      if (found !== undefined) {
        yield* Effect.forEach(found.problems.list, raise, { discard: true })
        yield* listener.looked({
          verdict: found.verdict,
          pending: found.tally.pending,
          problems: found.problems.total,
          lost
        })
        reading.forgetSettled()
      }
      yield* Effect.sleep(every)
    }
  })
