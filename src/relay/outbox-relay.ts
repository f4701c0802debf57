import { randomUUID } from "node:crypto"
import { Effect, Fiber } from "effect"
import { Broker } from "../broker/broker.ts"
import { largestSourced } from "../broker/topology.ts"
import { type OutboxReport, OutboxReporter } from "../cluster/outbox-reports.ts"
import { outboxSource } from "../domain/intake.ts"
import { lookAtIntake } from "../intake/look-at-intake.ts"
import { type NotStored, storeIncoming } from "../intake/store-incoming.ts"
import { rowProblem } from "../outbox/event-row.ts"
import type { TableName } from "../outbox/table-name.ts"
import { timers } from "../time/timers.ts"
import { openSession } from "./database.ts"
import type { Driver } from "./drivers.ts"
import type { RelayFigures } from "./figures.ts"
import type { PendingRow, Waiting } from "./outbox-table.ts"
import type { Outcome } from "./relay.ts"
import { type RelayListener, runRelay } from "./relay.ts"

const refused = (why: string): Outcome => ({ kind: "refused", why })

/** What comes of a row that the intake has not taken. */
const notTaken = (
  { reason, text }: NotStored,
  bytes: number,
  { largestMessage, names }: Broker["Service"]
): Outcome => {
  if (reason === "invalid") return refused(text)
  if (reason === "too-large") {
    const maxPayload = largestMessage()
    return refused(
      `the body's ${bytes} bytes and its headers are more than the ${largestSourced(maxPayload)} bytes that ${names.intake} takes with the broker's max_payload (${maxPayload}): publish a link to the data instead, or raise max_payload, run \`petrel init\`, and release the row`
    )
  }
  const hint = reason === "full" ? ": give it more with `petrel init --intake-bytes`" : ""
  return { kind: "unknown", why: `${text}${hint}` }
}

/** Publishes a row as an event of its tenant. The same row twice is one event. */
const publishRow = Effect.fnUntraced(function* (
  row: PendingRow
): Effect.fn.Return<Outcome, never, Broker> {
  const { body, contentType, eventId: id, tenant, traceparent, tracestate, type } = row
  const broker = yield* Broker
  const problem = rowProblem({ ...row, id })
  if (problem !== undefined) return refused(problem)
  return yield* storeIncoming({
    ...{ tenant, source: outboxSource, id, type, body, contentType },
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(tracestate === undefined ? {} : { headers: [["tracestate", tracestate]] })
  }).pipe(
    Effect.map(
      ({ as, seq }): Outcome =>
        as === "collided"
          ? refused(`another event of ${tenant} has the id ${id}: it is ${seq} of the intake`)
          : { kind: "stored", seq }
    ),
    Effect.catch((error) => Effect.succeed(notTaken(error, body.byteLength, broker)))
  )
})

export interface OutboxRelayOptions {
  /** Of the outbox, one token: reports and alerts have it. */
  readonly name: string
  readonly driver: Driver
  /** Of the database. */
  readonly url: string
  readonly table: TableName
  /** ms */
  readonly keepMs: number
  readonly pollMs: number
  readonly figures: RelayFigures
  /** Called when it begins to stand by, or to publish. */
  readonly became: (state: "standing-by" | "publishing") => Effect.Effect<void>
  /** Pause between reports, ms. (Default: 5 s) */
  readonly reportMs?: number
}

const defaultReportMs = 5_000
/** How long the broker is waited for where no row is to be stored, ms. */
const lookMs = 2_000

/** What is known of a relay, for its reports and for /readyz. */
export class RelayState {
  isPublishing = false
  isStandingBy = false
  /** Returns true while the broker is connected. */
  isConnected = () => false
  /** What keeps rows from being published; what the intake says where there are none. */
  #ofRows: string | undefined
  #ofIntake: string | undefined
  #problemSince = 0

  /** @returns true if this is news. */
  setProblem(why: string | undefined): boolean {
    const isNews = (why === undefined) !== (this.#ofRows === undefined)
    this.#begin(why)
    this.#ofRows = why
    return isNews
  }

  /** @param why what keeps the intake from taking rows, one sentence; undefined if nothing does. */
  setIntakeProblem(why: string | undefined): void {
    this.#begin(why)
    this.#ofIntake = why
  }

  #begin(why: string | undefined): void {
    if (why !== undefined && this.#problem === undefined) this.#problemSince = timers.monotonicMs()
  }

  get #problem(): string | undefined {
    return this.#ofRows ?? this.#ofIntake
  }

  get problem(): { readonly problem: string; readonly problemMs: number } | undefined {
    const problem = this.#problem
    return problem === undefined
      ? undefined
      : { problem, problemMs: timers.monotonicMs() - this.#problemSince }
  }

  /** What keeps it from its work, one sentence each. */
  problems(): ReadonlyArray<string> {
    if (!this.isConnected()) return ["the broker is not connected"]
    const problem = this.#problem
    if (problem !== undefined) return [problem]
    return this.isPublishing || this.isStandingBy ? [] : ["it has no session of the database yet"]
  }
}

const listener = ({ became, figures }: OutboxRelayOptions, state: RelayState): RelayListener => {
  const become = (publishing: boolean, standingBy: boolean): void => {
    state.isPublishing = publishing
    state.isStandingBy = standingBy
    figures.isPublishing = publishing
  }
  const recovered = (why: string | undefined) =>
    state.setProblem(why)
      ? why === undefined
        ? Effect.logInfo("the outbox is published again")
        : Effect.logWarning("the outbox cannot be published; trying again", { why })
      : Effect.void
  return {
    connecting: () => {
      become(false, false)
      figures.waiting = undefined
    },
    standingBy: () => {
      become(false, true)
      return Effect.andThen(recovered(undefined), became("standing-by"))
    },
    publishing: () => {
      become(true, false)
      return Effect.andThen(recovered(undefined), became("publishing"))
    },
    stored: (_, waitedMs) => figures.published(waitedMs),
    setAside: ({ eventId, tenant, type }, why) => {
      figures.setAside()
      return Effect.logError("a row of the outbox can never be published and is set aside", {
        ...{ tenant, event: eventId, type, why }
      })
    },
    removed: (rows) => figures.removed(rows),
    problem: recovered,
    waiting: (waiting) =>
      Effect.sync(() => {
        figures.waiting = waiting
      })
  }
}

/** Until rows are counted for the first time. */
const noRows: Waiting = { pending: 0, oldestMs: 0, setAside: 0 }

/**
 * Looks again and again whether the intake answers, and says how the outbox is. What the broker does
 * not take is said the next time.
 */
const reporting = (
  { figures, name, reportMs = defaultReportMs }: OutboxRelayOptions,
  state: RelayState
) => {
  const reporter = new OutboxReporter()
  let wasContested = false
  const relay = randomUUID()
  let counted = { waiting: noRows, at: timers.wallMs() }
  const report = (problem: Pick<OutboxReport, "problem" | "problemMs"> | undefined) => {
    const at = timers.wallMs()
    const isCounted = figures.waiting !== undefined
    if (figures.waiting !== undefined) counted = { waiting: figures.waiting, at }
    const { oldestMs, pending, setAside } = counted.waiting
    return reporter
      .write(
        {
          ...{ v: 1, name, at, relay, pending, setAside, ...problem },
          oldestMs: pending === 0 ? 0 : oldestMs + at - counted.at,
          ...(isCounted ? {} : { countedAt: counted.at })
        },
        state.isPublishing
      )
      .pipe(
        Effect.catch((error) => Effect.logDebug("the state of the outbox was not stored", error))
      )
  }
  const every = Effect.gen(function* () {
    yield* Effect.sleep(reportMs)
    const intake = yield* lookAtIntake(lookMs)
    state.setIntakeProblem("problem" in intake ? intake.problem : undefined)
    const { contested } = reporter
    if (contested !== undefined && !wasContested)
      yield* Effect.logWarning(`the outbox ${name} has two relays that publish`, {
        why: contested.problem
      })
    wasContested = contested !== undefined
    yield* report(state.problem ?? contested)
  })
  return {
    reports: Effect.forever(every),
    /** Says why it ended, to whoever looks before its silence is noticed. */
    ended: (why: string) =>
      report({
        problem: `its relay has ended: ${why}`,
        problemMs: state.problem?.problemMs ?? 0
      }).pipe(Effect.timeoutOption(lookMs))
  }
}

/** Relays an outbox to the intake until it is interrupted. Fails where waiting does not help. */
export const relayOutbox = Effect.fnUntraced(function* (
  options: OutboxRelayOptions,
  state: RelayState
) {
  const { driver, keepMs, pollMs, table, url } = options
  const broker = yield* Broker
  state.isConnected = () => broker.life() !== undefined
  const { ended, reports } = reporting(options, state)
  const reporter = yield* Effect.forkScoped(reports)
  return yield* runRelay({
    ...{ table, keepMs, pollMs },
    open: (onBroken) => openSession(driver, url, onBroken),
    publish: (row) => Effect.provideService(publishRow(row), Broker, broker),
    hears: listener(options, state)
  }).pipe(
    Effect.tapError(({ message }) => Effect.andThen(Fiber.interrupt(reporter), ended(message)))
  )
})
