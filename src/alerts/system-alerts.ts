import { Array as Arr, Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { surveyIntake } from "../broker/survey-intake.ts"
import type { EventsSurvey } from "../broker/survey-streams.ts"
import { lookAtStream, surveyEvents } from "../broker/survey-streams.ts"
import { type GatewayReport, readGatewayReports } from "../cluster/gateway-reports.ts"
import type { TenantCounts } from "../cluster/introspection.ts"
import { queryOwner } from "../cluster/introspection.ts"
import { type OutboxReport, readOutboxReports, stuckMs } from "../cluster/outbox-reports.ts"
import { lostByTenant, readReconcileReports } from "../cluster/reconcile-reports.ts"
import { readRoster } from "../cluster/roster.ts"
import { readSelfReports } from "../cluster/self-report.ts"
import { nobody } from "../domain/token.ts"
import { countBacklogs } from "../history/backlog-count.ts"
import { Growth } from "../policy/alert-window.ts"
import { incomingReadings, tenantReadings } from "../policy/alerts.ts"
import type { SystemState } from "../policy/system-alerts.ts"
import { systemReadings } from "../policy/system-alerts.ts"
import { SteadySince } from "../time/elapsed.ts"
import type { AlertRegister, JudgeOptions } from "./alert-register.ts"
import { lookAgainAndAgain, makeAlertRegister } from "./alert-register.ts"
import { aboutOf, theSystem } from "./alert-store.ts"

/** Maximum concurrent requests. */
const maxConcurrentLookups = 8
/** How long the alert stays after an audit found deliveries missing, ms. */
const missingFor = 24 * 60 * 60_000
/** Looks from one search for it to the next: the broker scans the subjects of all endpoints. */
const missingEvery = 4
/** Looks from one reading of what relays say of their outboxes to the next. */
const outboxesEvery = 2
/** The same of what comes in. */
const incomingEvery = 2
/**
 * How often what waits is counted within a window, and how many streams at a time. With thousands of
 * backlogs a count is twice as many requests.
 */
const counting = { inWindow: 20, atOnce: 1 }
/** Tenants named in one request to the owners: some 64 KiB. */
const tenantsAtOnce = 1_000

const noCounts = { delivered: 0, pending: 0, dead: 0, openCircuits: 0 }

const hasTrouble = ({ dead, pending }: TenantCounts): boolean => dead + pending > 0

interface SystemAlertsOptions extends JudgeOptions {
  /** How far the clock of this machine is ahead of the broker's (negative: behind), ms. */
  readonly skewMs: () => number
}

/**
 * Raises and clears alerts about tenants and the system, for as long as the scope lives. Only the
 * owner of the first partition does so; it asks all owners for their counts.
 */
export const runSystemAlerts = Effect.fnUntraced(function* (options: SystemAlertsOptions) {
  const register = yield* makeAlertRegister({
    ...options,
    keys: "raised.>",
    isMine: (subject) => aboutOf(subject) !== "endpoint"
  })
  const judge = new SystemJudge(options, register)
  yield* lookAgainAndAgain(register.load, judge.look, options.every)
})

/** Judges tenants and the system, look by look. */
class SystemJudge {
  readonly #options: SystemAlertsOptions
  readonly #register: AlertRegister
  /** Index of each partition. */
  readonly #partitions: ReadonlyArray<number>
  /** When this worker began to look. */
  readonly #began: SteadySince
  /** What waited at each look since then. */
  #growth = new Growth()
  #growthSince = 0
  /** When it was last counted. */
  #countedAt = 0
  #looks = 0
  /** When an audit last found deliveries missing, ms since the epoch. */
  #missingAt = 0
  #incomingLooks = 0
  /** What relays have said of their outboxes. */
  #outboxes: ReadonlyArray<OutboxReport> = []

  constructor(options: SystemAlertsOptions, register: AlertRegister) {
    this.#options = options
    this.#register = register
    this.#partitions = Array.from({ length: options.partitions }, (_, index) => index)
    this.#began = new SteadySince(options.clock.currentTimeMillisUnsafe())
  }

  readonly look = Effect.gen({ self: this }, function* () {
    const { holds, partitions } = this.#options
    if (!holds()) return
    yield* this.#register.resume
    const troubled = new Set<string>()
    for (const { tenant } of this.#register.entries()) if (tenant !== nobody) troubled.add(tenant)
    const answers = yield* this.#askOwners([])
    for (const { tenants = [] } of answers)
      for (const one of tenants) if (hasTrouble(one)) troubled.add(one.tenant)
    const open = answers.reduce((sum, { openCircuits = 0 }) => sum + openCircuits, 0)
    const dead = answers
      .flatMap(({ tenants = [] }) => tenants)
      .reduce((sum, { dead }) => sum + dead, 0)
    yield* this.#judgeSystem(open, dead, answers)
    yield* this.#judgeIncoming(troubled)
    // Partial sums would mislead, so judge only when all owners have answered.
    if (answers.length < partitions) return
    for (const tenants of Arr.chunksOf(troubled, tenantsAtOnce)) {
      const answers = yield* this.#askOwners(tenants)
      if (answers.length < partitions) return
      yield* this.#judgeTenants(tenants, answers)
    }
  })

  /** @param answers of all owners, or of some: then more circuits may be open. */
  readonly #judgeSystem = Effect.fnUntraced(
    { self: this },
    function* (circuitsOpen: number, deadLetters: number, answers: ReadonlyArray<OwnerCounts>) {
      const isWhole = answers.length === this.#options.partitions
      const own = this.#options.thresholds.system()
      const { counts } = yield* surveyEvents(undefined)
      yield* this.#countWaiting(counts.waitingForRouter, own.window)
      if (this.#looks % missingEvery === 0) this.#missingAt = yield* readLastMissing
      const { failing } = yield* readSelfReports(yield* countWorkers)
      if (this.#looks++ % outboxesEvery === 0) this.#outboxes = yield* readOutboxReports
      const at = this.#options.clock.currentTimeMillisUnsafe()
      // What others have stored has the broker's time, or that of their machines.
      const now = at - this.#options.skewMs()
      const began = this.#began.at(at)
      const state: SystemState = {
        circuitsOpen,
        unroutedMs: unroutedMs(counts, now),
        deadLetters,
        growth: this.#growth.within(own.window, at),
        isMissing: now - this.#missingAt < missingFor,
        failing: failing.length,
        outboxMs: Math.max(0, ...this.#outboxes.map((report) => stuckMs(report, now))),
        outboxSetAside: this.#outboxes.reduce((sum, { setAside }) => sum + setAside, 0)
      }
      // Each has a cause of its own, so each is a group of its own.
      for (const reading of systemReadings(state, own)) {
        if (!isWhole && sums.has(reading.name) && reading.state !== "bad") continue
        // Dead letters are counted by the owners, each since it began.
        const since =
          reading.name === "system-dead-letters" ? countedSince(answers, began, at) : began
        yield* this.#register.judge(theSystem, {
          readings: [reading],
          at,
          watched: at - since >= own.window,
          window: own.window,
          more: {}
        })
      }
    }
  )

  /**
   * Counts what waits, where the last count is old enough.
   *
   * @param unrouted what waits for the router; null if unknown.
   */
  readonly #countWaiting = Effect.fnUntraced(
    { self: this },
    function* (unrouted: number | null, window: number) {
      const { clock } = this.#options
      const now = clock.currentTimeMillisUnsafe()
      const began = this.#began.at(now)
      const isKnown = began === this.#growthSince
      if (isKnown && Math.abs(now - this.#countedAt) < window / counting.inWindow) return
      if (!isKnown) this.#growth = new Growth()
      this.#growthSince = began
      const waiting = yield* countWaiting(this.#partitions, unrouted)
      this.#countedAt = clock.currentTimeMillisUnsafe()
      if (waiting !== undefined) this.#growth.note(this.#countedAt, waiting)
    }
  )

  /** @param known tenants about which something is raised. */
  readonly #judgeIncoming = Effect.fnUntraced(
    { self: this },
    function* (known: ReadonlySet<string>) {
      const { clock, thresholds } = this.#options
      if (this.#incomingLooks++ % incomingEvery !== 0) return
      const refusing = refusingSources(yield* readGatewayReports)
      const found = yield* surveyIntake.pipe(
        Effect.map((intake) => intake?.quarantined ?? new Map<string, number>()),
        Effect.orElseSucceed(() => undefined)
      )
      const reconciled = yield* readReconcileReports
      const at = clock.currentTimeMillisUnsafe()
      const lost = lostByTenant(reconciled, at)
      for (const tenant of new Set([
        ...[...refusing.keys(), ...(found?.keys() ?? [])],
        ...[...lost.keys(), ...known]
      ])) {
        const quarantined = found === undefined ? undefined : (found.get(tenant) ?? 0)
        const state = {
          refusing: refusing.get(tenant)?.size ?? 0,
          quarantined,
          lost: lost.get(tenant) ?? 0
        }
        const own = thresholds.tenant(tenant)
        const contact = thresholds.contact(tenant)
        const more = contact === undefined ? {} : { contact }
        for (const reading of incomingReadings(state, own))
          yield* this.#register.judge(
            { tenant, endpoint: nobody },
            { readings: [reading], at, watched: true, window: own.window, more }
          )
      }
    }
  )

  readonly #judgeTenants = Effect.fnUntraced(
    { self: this },
    function* (tenants: ReadonlyArray<string>, answers: ReadonlyArray<OwnerCounts>) {
      const { clock, thresholds } = this.#options
      const at = clock.currentTimeMillisUnsafe()
      const began = this.#began.at(at)
      const since = countedSince(answers, began, at)
      const sums = sumByTenant(answers)
      for (const tenant of tenants) {
        const own = thresholds.tenant(tenant)
        const contact = thresholds.contact(tenant)
        const more = contact === undefined ? {} : { contact }
        const readings = tenantReadings(sums.get(tenant) ?? noCounts, own)
        yield* this.#register.judge(
          { tenant, endpoint: nobody },
          { readings, at, watched: at - since >= own.window, window: own.window, more }
        )
      }
    }
  )

  /** The answers of the owners that answered, with the counts of these tenants. */
  #askOwners(tenants: ReadonlyArray<string>) {
    return Effect.forEach(
      this.#partitions,
      (index) => queryOwner(index, { about: "alerts", tenants }),
      { concurrency: maxConcurrentLookups }
    ).pipe(Effect.map((answers) => answers.filter((answer) => answer !== undefined)))
  }
}

/** The sources that refuse all that comes, by tenant, as their gateways say. */
const refusingSources = (
  reports: ReadonlyArray<GatewayReport>
): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>()
  for (const { source, tenant } of reports.flatMap(({ refusing }) => refusing))
    found.set(tenant, (found.get(tenant) ?? new Set()).add(source))
  return found
}

/** Part of an owner's answer. */
interface OwnerCounts {
  readonly tenants?: ReadonlyArray<TenantCounts>
  /** Since when the owner counts, ms since the epoch. */
  readonly watchedSince?: number
}

/** Alerts about the system that are judged of what all owners have. */
const sums: ReadonlySet<string> = new Set(["circuits-open", "system-dead-letters"])

/** Since when all owners count, ms since the epoch. */
const countedSince = (answers: ReadonlyArray<OwnerCounts>, began: number, at: number): number =>
  Math.max(began, ...answers.map(({ watchedSince = at }) => watchedSince))

const sumByTenant = (answers: ReadonlyArray<OwnerCounts>) => {
  const sums = new Map<string, Required<Omit<TenantCounts, "tenant">>>()
  for (const { tenants = [] } of answers)
    for (const { dead, delivered, openCircuits = 0, pending, tenant } of tenants) {
      const sum = sums.get(tenant) ?? noCounts
      sums.set(tenant, {
        delivered: sum.delivered + delivered,
        pending: sum.pending + pending,
        dead: sum.dead + dead,
        openCircuits: sum.openCircuits + openCircuits
      })
    }
  return sums
}

/** How long the oldest event has waited to be routed, ms; undefined if unknown. */
const unroutedMs = (
  { inRouter, oldestUnroutedAt, waitingForRouter }: EventsSurvey["counts"],
  now: number
): number | undefined => {
  if (waitingForRouter === null || inRouter === null) return undefined
  return oldestUnroutedAt === null ? 0 : now - oldestUnroutedAt
}

/**
 * Counts what waits for the router, in queues and in backlogs; undefined if unknown.
 *
 * @param unrouted what waits for the router.
 */
const countWaiting = Effect.fnUntraced(function* (
  partitions: ReadonlyArray<number>,
  unrouted: number | null
) {
  const { names } = yield* Broker
  const inQueue = Effect.fnUntraced(function* (index: number) {
    const { info } = yield* lookAtStream(names.deliveries(index))
    return info?.state.messages
  })
  const inBacklog = (index: number) =>
    countBacklogs(index).pipe(
      Effect.map((counts) => [...counts.values()].reduce((sum, count) => sum + count, 0)),
      Effect.orElseSucceed(() => undefined)
    )
  const counts = yield* Effect.forEach(
    partitions.flatMap((index) => [inQueue(index), inBacklog(index)]),
    (count) => count,
    { concurrency: counting.atOnce }
  )
  let waiting = unrouted ?? undefined
  for (const count of counts)
    waiting = waiting === undefined || count === undefined ? undefined : waiting + count
  return waiting
})

/** Returns how many workers there are; infinitely many where that cannot be read. */
const countWorkers = readRoster.pipe(
  Effect.map(({ members }) => members.size),
  Effect.orElseSucceed(() => Number.POSITIVE_INFINITY)
)

/** When an audit last recorded that a delivery is missing, ms since the epoch; 0 if none did. */
const readLastMissing = Effect.gen(function* () {
  const { names, readMessage } = yield* Broker
  const message = yield* readMessage("look for what audits found", names.history, {
    last_by_subj: names.subjects.fact("*", "*", "failure", "missing")
  })
  return message === null ? 0 : message.time.getTime()
})
