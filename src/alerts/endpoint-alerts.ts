import { type Clock, Effect } from "effect"
import { endpointKey } from "../domain/endpoint.ts"
import type { Health } from "../domain/health.ts"
import { partitionOf } from "../domain/names.ts"
import type { LiveEndpoint } from "../endpoints/directory.ts"
import { Directory } from "../endpoints/directory.ts"
import { noAlertCounts } from "../policy/alert-window.ts"
import type { Reading } from "../policy/alerts.ts"
import { endpointReadings, isSimplyWell } from "../policy/alerts.ts"
import type { AlertBook } from "./alert-book.ts"
import type { Found } from "./alert-register.ts"
import { isRaised, makeAlertRegister } from "./alert-register.ts"
import { lookAgainAndAgain } from "./alert-rounds.ts"
import type { AlertSubject } from "./alert-store.ts"
import type { Thresholds } from "./thresholds.ts"

/** Endpoints that are judged before deliveries get their turn: less than a ms. */
const maxConcurrentEndpoints = 128

export interface EndpointAlertsOptions {
  /** Of the partition, and of how many. */
  readonly index: number
  readonly partitions: number
  readonly worker: string
  readonly clock: Clock.Clock
  readonly nextId: () => string
  /** True while this worker is owner. */
  readonly holds: () => boolean
  /** For how long the history knows an id, ms. */
  readonly dedupe: number
  /** How often endpoints of which there is something new are judged, ms. */
  readonly every: number
  readonly book: AlertBook
  readonly thresholds: Thresholds
  readonly health: (key: string) => Health | undefined
}

const gone: Omit<Reading, "name"> = {
  level: "warn",
  unit: "",
  threshold: 0,
  state: "off",
  quiet: true
}

/**
 * Raises and clears alerts about the endpoints of a partition, for as long as the scope lives.
 * Judges the endpoints with new outcomes and the endpoints with raised alerts.
 */
export const runEndpointAlerts = Effect.fnUntraced(function* (options: EndpointAlertsOptions) {
  const { book, clock, health, index, partitions, thresholds } = options
  const directory = yield* Directory
  const began = clock.currentTimeMillisUnsafe()
  /** When circuits with a raised alert were last seen open, ms since the epoch. */
  const openAt = new Map<string, number>()
  const unavailable = new Set<string>()
  const isMine = ({ endpoint, tenant }: AlertSubject) =>
    partitionOf(tenant, endpoint, partitions) === index
  const register = yield* makeAlertRegister({ ...options, keys: "raised.endpoint.>", isMine })
  const stop = directory.onUnavailable((tenant, endpoint) => {
    if (isMine({ tenant, endpoint })) unavailable.add(endpointKey(tenant, endpoint))
  })
  yield* Effect.addFinalizer(() => Effect.sync(stop))

  const stateOf = (key: string, { config }: LiveEndpoint, now: number) => {
    const known = health(key)
    const isOpen = known?.generation === config.generation && known.circuit.state !== "closed"
    if (isOpen) openAt.set(key, now)
    return {
      isOpen,
      closedFor: now - (openAt.get(key) ?? began),
      isDisabled: config.disabled !== undefined
    }
  }

  const moreOf = (key: string, { config }: LiveEndpoint): Found["more"] => {
    const page = book.page(key)
    const known = health(key)
    const contact = config.contact ?? thresholds.contact(config.tenant)
    const counted = Math.max(known?.failuresInRow ?? 0, known?.permanentInRow ?? 0)
    const failuresInRow = Math.max(page?.failuresInRow ?? 0, counted)
    const lastStatus = page?.lastStatus ?? known?.lastStatus
    const lastError = page?.lastError ?? known?.lastError
    return {
      failuresInRow,
      ...(contact === undefined ? {} : { contact }),
      ...(lastStatus === undefined ? {} : { lastStatus }),
      ...(lastError === undefined ? {} : { lastError: lastError })
    }
  }

  /** An endpoint that was removed, or made again, has no alerts. */
  const clearAll = Effect.fnUntraced(function* (subject: AlertSubject, at: number) {
    for (const { name, windowMs } of register.raised(subject).raised)
      yield* register.judge(subject, {
        reading: { ...gone, name },
        at,
        watched: true,
        window: windowMs,
        reason: "the endpoint was removed",
        more: {}
      })
  })

  const judge = Effect.fnUntraced(function* (key: string) {
    const [tenant = "", id = ""] = key.split(".")
    const subject = { tenant, endpoint: id }
    const at = clock.currentTimeMillisUnsafe()
    const endpoint = directory.find(key)
    const { generation, raised } = register.raised(subject)
    // An unreadable endpoint still exists: its alerts stay.
    if (endpoint === undefined && directory.unreadable(tenant).includes(id)) return
    if (endpoint === undefined || (generation ?? "") !== endpoint.config.generation)
      if (raised.length > 0) yield* clearAll(subject, at)
    if (endpoint === undefined) {
      openAt.delete(key)
      return
    }
    const own = thresholds.endpoint(tenant, endpoint.config.alerts)
    const page = book.page(key)
    const isSame = page !== undefined && page.generation === endpoint.config.generation
    const counts = isSame ? page.window.read(at) : noAlertCounts
    const state = stateOf(key, endpoint, at)
    if (raised.length === 0 && isSimplyWell(counts, state, own)) return
    let more: Found["more"] | undefined
    for (const reading of endpointReadings(counts, state, own)) {
      if (reading.state !== "bad" && !isRaised(register.raised(subject), reading.name)) continue
      more ??= moreOf(key, endpoint)
      yield* register.judge(subject, {
        reading,
        at,
        watched: at - began >= own.window,
        window: own.window,
        generation: endpoint.config.generation,
        more
      })
    }
    if (!isRaised(register.raised(subject), "circuit-opened")) openAt.delete(key)
  })

  const look = Effect.gen(function* () {
    if (!options.holds()) return
    // Also judge alerts that another worker has cleared since: the cause may persist.
    const before = register.entries()
    yield* register.resume
    const keys = new Set(book.takeTouched(clock.currentTimeMillisUnsafe()))
    for (const { endpoint, tenant } of [...before, ...register.entries()])
      keys.add(endpointKey(tenant, endpoint))
    for (const key of unavailable) keys.add(key)
    unavailable.clear()
    let judged = 0
    for (const key of keys) {
      yield* judge(key)
      if (++judged % maxConcurrentEndpoints === 0) yield* Effect.sleep(0)
    }
  })

  const load = Effect.gen(function* () {
    yield* register.load
    for (const key of directory.disabled()) {
      const [tenant = "", endpoint = ""] = key.split(".")
      if (isMine({ tenant, endpoint })) unavailable.add(key)
    }
  })

  yield* lookAgainAndAgain(load, look, options.every)
})
