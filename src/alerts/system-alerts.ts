import { Array as Arr, type Clock, Effect } from "effect"
import { Broker } from "../broker/connection.ts"
import { lookAtConsumer, lookAtStream } from "../broker/survey-streams.ts"
import type { TenantCounts } from "../cluster/introspection.ts"
import { queryOwner } from "../cluster/introspection-query.ts"
import { nobody } from "../domain/token.ts"
import type { SystemState } from "../policy/alerts.ts"
import { Growth, successReadings, systemReadings } from "../policy/alerts.ts"
import { makeAlertRegister } from "./alert-register.ts"
import { lookAgainAndAgain } from "./alert-rounds.ts"
import { aboutOf, theSystem } from "./alert-store.ts"
import type { Thresholds } from "./thresholds.ts"

/** Maximum concurrent requests. */
const maxConcurrentLookups = 8
/** How long the alert stays after an audit found deliveries missing, ms. */
const missingFor = 24 * 60 * 60_000
/** Looks from one search for it to the next: the broker scans the subjects of all endpoints. */
const missingEvery = 4
/** Tenants named in one request to the owners: some 64 KiB. */
const tenantsAtOnce = 1_000

export interface SystemAlertsOptions {
  readonly partitions: number
  readonly worker: string
  readonly clock: Clock.Clock
  readonly nextId: () => string
  /** True while this worker is the one to judge. */
  readonly holds: () => boolean
  /** For how long the history knows an id, ms. */
  readonly dedupe: number
  /** How often it looks, ms. */
  readonly every: number
  readonly thresholds: Thresholds
}

const noCounts = { delivered: 0, pending: 0, dead: 0 }

const hasTrouble = ({ dead, pending }: TenantCounts): boolean => dead + pending > 0

/**
 * Raises and clears alerts about tenants and the system, for as long as the scope lives. Only the
 * owner of the first partition does so; it asks all owners for their counts.
 */
export const runSystemAlerts = Effect.fnUntraced(function* (options: SystemAlertsOptions) {
  const { clock, partitions, thresholds } = options
  const { ask, jsm, names } = yield* Broker
  const register = yield* makeAlertRegister({
    ...options,
    keys: "raised.>",
    isMine: (subject) => aboutOf(subject) !== "endpoint"
  })
  const began = clock.currentTimeMillisUnsafe()
  const growth = new Growth()
  let looks = 0
  /** When an audit last found deliveries missing, ms since the epoch. */
  let missing = 0
  const all = Array.from({ length: partitions }, (_, index) => index)

  const askAll = (tenants: ReadonlyArray<string>) =>
    Effect.forEach(all, (index) => queryOwner(index, { about: "alerts", tenants }), {
      concurrency: maxConcurrentLookups
    })

  /** Counts what waits for the router, in queues and in backlogs; undefined if unknown. */
  const countWaiting = Effect.gen(function* () {
    const streams = all.flatMap((index) => [names.deliveries(index), names.backlog(index)])
    const [router, ...found] = yield* Effect.all(
      [
        lookAtConsumer(names.events, names.routerConsumer),
        ...streams.map((name) =>
          Effect.map(lookAtStream(name), ({ info }) =>
            info === undefined ? undefined : { pending: info.state.messages }
          )
        )
      ],
      { concurrency: maxConcurrentLookups }
    )
    let waiting = router?.pending
    for (const one of found)
      waiting = waiting === undefined || one === undefined ? undefined : waiting + one.pending
    return waiting
  })

  const lastMissing = ask("look for what audits found", () =>
    jsm.streams.getMessage(names.history, {
      last_by_subj: names.subjects.fact("*", "*", "failure", "missing")
    })
  ).pipe(Effect.map((message) => (message === null ? 0 : message.time.getTime())))

  const judgeTenants = Effect.fnUntraced(function* (
    tenants: ReadonlyArray<string>,
    answers: ReadonlyArray<{
      readonly tenants?: ReadonlyArray<TenantCounts>
      readonly watchedSince?: number
    }>
  ) {
    const at = clock.currentTimeMillisUnsafe()
    const since = Math.max(began, ...answers.map(({ watchedSince = at }) => watchedSince))
    const sums = new Map<string, Omit<TenantCounts, "tenant">>()
    for (const { dead, delivered, pending, tenant } of answers.flatMap(
      ({ tenants = [] }) => tenants
    )) {
      const sum = sums.get(tenant) ?? noCounts
      sums.set(tenant, {
        delivered: sum.delivered + delivered,
        pending: sum.pending + pending,
        dead: sum.dead + dead
      })
    }
    for (const tenant of tenants) {
      const own = thresholds.tenant(tenant)
      const contact = thresholds.contact(tenant)
      const more = contact === undefined ? {} : { contact }
      for (const reading of successReadings(sums.get(tenant) ?? noCounts, own))
        yield* register.judge(
          { tenant, endpoint: nobody },
          { reading, at, watched: at - since >= own.window, window: own.window, more }
        )
    }
  })

  /** @param isWhole false if an owner did not answer, so more circuits may be open. */
  const judgeSystem = Effect.fnUntraced(function* (circuitsOpen: number, isWhole: boolean) {
    const own = thresholds.system()
    const waiting = yield* countWaiting
    if (looks++ % missingEvery === 0) missing = yield* lastMissing
    const at = clock.currentTimeMillisUnsafe()
    if (waiting !== undefined) growth.note(at, waiting)
    const state: SystemState = {
      circuitsOpen,
      growth: growth.within(own.window, at),
      isMissing: at - missing < missingFor
    }
    for (const reading of systemReadings(state, own)) {
      if (!isWhole && reading.name === "circuits-open" && reading.state !== "bad") continue
      yield* register.judge(theSystem, {
        reading,
        at,
        watched: at - began >= own.window,
        window: own.window,
        more: {}
      })
    }
  })

  const look = Effect.gen(function* () {
    if (!options.holds()) return
    yield* register.resume
    const troubled = new Set<string>()
    for (const { tenant } of register.entries()) if (tenant !== nobody) troubled.add(tenant)
    const first = (yield* askAll([])).filter((answer) => answer !== undefined)
    for (const { tenants = [] } of first)
      for (const one of tenants) if (hasTrouble(one)) troubled.add(one.tenant)
    const open = first.reduce((sum, { openCircuits = 0 }) => sum + openCircuits, 0)
    yield* judgeSystem(open, first.length === partitions)
    // Partial sums would mislead, so judge only when all owners have answered.
    if (first.length < partitions) return
    for (const tenants of Arr.chunksOf(troubled, tenantsAtOnce)) {
      const answers = (yield* askAll(tenants)).filter((answer) => answer !== undefined)
      if (answers.length < partitions) return
      yield* judgeTenants(tenants, answers)
    }
  })

  yield* lookAgainAndAgain(register.load, look, options.every)
})
