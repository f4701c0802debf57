import { Clock, Effect } from "effect"
import { firstRound } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import { nobody } from "../../domain/token.ts"
import { Facts } from "../facts.ts"
import { examine } from "./audit.ts"
import { openBooks } from "./books.ts"
import { judge } from "./judgement.ts"
import { roundName } from "./ledger.ts"
import type { Problem } from "./problem.ts"
import type { AuditRange } from "./reach.ts"
import { readReach } from "./reach.ts"

/** Something that should long have ended, as it is told in the history. */
export interface Raised {
  readonly tenant: string
  /** `_` where the event reached nobody. */
  readonly endpoint: string
  readonly event: string
  readonly eventSeq: number
  readonly round?: string
  readonly reason: string
}

export interface WatchListener<R> {
  readonly raised: (raised: Raised) => Effect.Effect<void, unknown, R>
  /** After each look. */
  readonly looked: (found: {
    readonly verdict: string
    readonly pending: number
  }) => Effect.Effect<void>
}

const raisable: ReadonlySet<string> = new Set(["missing", "overdue", "unrouted", "plan-incomplete"])

const raisedOf = ({ endpoint, event, eventSeq, round, says, tenant }: Problem): Raised => ({
  tenant: tenant ?? nobody,
  endpoint: endpoint ?? nobody,
  event: event ?? `evt_${eventSeq}`,
  eventSeq: eventSeq ?? 0,
  ...(round === undefined ? {} : { round }),
  reason: says
})

const factOf = ({ endpoint, event, eventSeq, round, ...raised }: Raised, at: number): Fact => ({
  v: 1,
  kind: "missing",
  at,
  ...raised,
  endpoint,
  event,
  eventSeq,
  ...(endpoint === nobody ? {} : { delivery: `${event}.${endpoint}` }),
  ...(round === undefined ? {} : { round }),
  worker: "audit"
})

/**
 * Goes on auditing: reads what is new every so often (ms), and tells in the history, once, of each
 * delivery that should have ended and of each event that reached nobody, so that whoever listens to
 * failures hears of it. What was told of before, by this one or another, is not told of again.
 */
export const watch = <R>(range: AuditRange, every: number, listener: WatchListener<R>) =>
  Effect.gen(function* () {
    const facts = yield* Facts
    const first = yield* readReach(range)
    const books = openBooks(first)
    while (true) {
      const reach = yield* readReach(range)
      const { firstEvent, isWhole } = books.ledger.scope
      books.ledger.scope = { ...reach.scope, firstEvent, isWhole }
      const findings = yield* examine(books, reach)
      const { problems, tally, verdict } = yield* judge(books, reach, findings)
      for (const problem of problems.list) {
        const raised = raisedOf(problem)
        const name = roundName({ ...raised, round: raised.round ?? firstRound })
        if (!raisable.has(problem.kind) || books.ledger.raised.has(name)) continue
        const at = yield* Clock.currentTimeMillis
        yield* facts.append(factOf(raised, at), `missing.${name}`)
        books.ledger.raised.add(name)
        yield* listener.raised(raised)
      }
      yield* listener.looked({ verdict, pending: tally.pending })
      books.ledger.forgetSettled()
      yield* Effect.sleep(every)
    }
  })
