import { Effect } from "effect"
import type { Delivery, Progress } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { Health } from "../domain/health.ts"
import { partitionOf } from "../domain/names.ts"
import type { LiveEndpoint } from "../endpoints/directory.ts"
import { Directory } from "../endpoints/directory.ts"
import type { AlertReading, GroupChange } from "../policy/alert-reading.ts"
import type { AlertCounts } from "../policy/alert-window.ts"
import { noAlertCounts } from "../policy/alert-window.ts"
import type { EndpointAvailability } from "../policy/alerts.ts"
import { endpointReadings, isSimplyWell } from "../policy/alerts.ts"
import { SteadySince } from "../time/elapsed.ts"
import type { SubjectReadings } from "./alert-change.ts"
import { changeOf } from "./alert-change.ts"
import { lastDeadLetter } from "./alert-facts.ts"
import type { AlertRegister, JudgeOptions } from "./alert-register.ts"
import { isRaised, lookAgainAndAgain, makeAlertRegister } from "./alert-register.ts"
import type { AlertSubject } from "./alert-store.ts"
import { AlertWindows } from "./alert-windows.ts"

/** Endpoints that are judged before deliveries get their turn: less than a ms. */
const maxConcurrentEndpoints = 128

interface EndpointAlertsOptions extends JudgeOptions {
  /** Index of the partition. */
  readonly index: number
  readonly windows: AlertWindows
  readonly health: (key: string) => Health | undefined
}

const gone: Omit<AlertReading, "name"> = {
  level: "warn",
  unit: "",
  threshold: 0,
  state: "off",
  quiet: true
}

const tellsOfDeadLetters = ({ also, reading, transition }: GroupChange): boolean =>
  transition !== "clear" && [reading.name, ...also].includes("dead-letters")

/**
 * Raises and clears alerts about the endpoints of a partition, for as long as the scope lives.
 * Judges the endpoints with new outcomes and the endpoints with raised alerts.
 */
const runEndpointAlerts = Effect.fnUntraced(function* (options: EndpointAlertsOptions) {
  const { index, partitions } = options
  const directory = yield* Directory
  const isMine = ({ endpoint, tenant }: AlertSubject) =>
    partitionOf(tenant, endpoint, partitions) === index
  const register = yield* makeAlertRegister({ ...options, keys: "raised.endpoint.>", isMine })
  const judge = new EndpointJudge(options, directory, register, isMine)
  const stop = directory.onUnavailable((tenant, endpoint) =>
    judge.onUnavailable({ tenant, endpoint })
  )
  yield* Effect.addFinalizer(() => Effect.sync(stop))
  yield* lookAgainAndAgain(judge.load, judge.look, options.every)
})

/** Judges the endpoints of one partition, look by look. */
export class EndpointJudge {
  readonly #options: EndpointAlertsOptions
  readonly #directory: Directory["Service"]
  readonly #register: AlertRegister
  readonly #isMine: (subject: AlertSubject) => boolean
  /** When this worker began to count outcomes. */
  readonly #counted: SteadySince
  /** The same at the last look, ms since the epoch. */
  #began: number
  /** When circuits with a raised alert were last seen open, ms since the epoch. */
  readonly #openAt = new Map<string, number>()
  /** Endpoints that were disabled, removed or made unreadable since the last look. */
  readonly #unavailable = new Set<string>()

  constructor(
    options: EndpointAlertsOptions,
    directory: Directory["Service"],
    register: AlertRegister,
    isMine: (subject: AlertSubject) => boolean
  ) {
    this.#options = options
    this.#directory = directory
    this.#register = register
    this.#isMine = isMine
    this.#began = options.clock.currentTimeMillisUnsafe()
    this.#counted = new SteadySince(this.#began)
  }

  onUnavailable(subject: AlertSubject): void {
    if (this.#isMine(subject)) this.#unavailable.add(endpointKey(subject.tenant, subject.endpoint))
  }

  readonly load = Effect.gen({ self: this }, function* () {
    yield* this.#register.load
    for (const key of this.#directory.givenUp()) {
      const [tenant = "", endpoint = ""] = key.split(".")
      this.onUnavailable({ tenant, endpoint })
    }
  })

  readonly look = Effect.gen({ self: this }, function* () {
    const { windows, clock, holds } = this.#options
    if (!holds()) return
    const began = this.#counted.at(clock.currentTimeMillisUnsafe())
    if (began !== this.#began) this.#openAt.clear()
    this.#began = began
    // Also judge alerts that another worker has cleared since: the cause may persist.
    const before = this.#register.entries()
    yield* this.#register.resume
    const keys = new Set(windows.takeTouched(clock.currentTimeMillisUnsafe()))
    for (const { endpoint, tenant } of [...before, ...this.#register.entries()])
      keys.add(endpointKey(tenant, endpoint))
    for (const key of this.#unavailable) keys.add(key)
    this.#unavailable.clear()
    let judged = 0
    for (const key of keys) {
      yield* this.#judge(key)
      if (++judged % maxConcurrentEndpoints === 0) yield* Effect.sleep(0)
    }
  })

  readonly #judge = Effect.fnUntraced({ self: this }, function* (key: string) {
    const [tenant = "", id = ""] = key.split(".")
    const subject = { tenant, endpoint: id }
    const at = this.#options.clock.currentTimeMillisUnsafe()
    const endpoint = this.#directory.find(key)
    const { generation, raised } = this.#register.raised(subject)
    // An unreadable endpoint still exists: its alerts stay.
    if (endpoint === undefined && this.#directory.unreadable(tenant).includes(id)) return
    if (endpoint === undefined || (generation ?? "") !== endpoint.config.generation)
      if (raised.length > 0) yield* this.#clearAll(subject, at)
    if (endpoint === undefined) {
      this.#openAt.delete(key)
      this.#options.windows.forget(key)
      return
    }
    const thresholds = this.#options.thresholds.endpoint(tenant, endpoint.config.alerts)
    const counts = this.#countsOf(key, endpoint, at)
    const state = this.#stateOf(key, endpoint, at)
    if (raised.length === 0 && isSimplyWell(counts, state, thresholds)) return
    const found = {
      readings: endpointReadings(counts, state, thresholds),
      at,
      watched: at - this.#began >= thresholds.window,
      window: thresholds.window,
      generation: endpoint.config.generation
    }
    const change = changeOf(this.#register.raised(subject), found)
    if (change === undefined) yield* this.#register.renew(subject, found)
    else {
      const more = this.#moreOf(key, endpoint)
      yield* this.#register.judge(subject, {
        ...found,
        more: tellsOfDeadLetters(change) ? yield* this.#withDeadLetter(subject, more) : more
      })
    }
    if (!isRaised(this.#register.raised(subject), "circuit-opened")) this.#openAt.delete(key)
  })

  /** An alert is raised without the dead letter where the history does not answer. */
  readonly #withDeadLetter = (subject: AlertSubject, more: SubjectReadings["more"]) =>
    Effect.match(lastDeadLetter(subject), {
      onFailure: () => more,
      onSuccess: (found) => (found === undefined ? more : { ...more, lastDeadLetter: found })
    })

  /** An endpoint that was removed, or made again, has no alerts. */
  readonly #clearAll = Effect.fnUntraced(
    { self: this },
    function* (subject: AlertSubject, at: number) {
      for (const { name, windowMs } of this.#register.raised(subject).raised)
        yield* this.#register.judge(subject, {
          readings: [{ ...gone, name }],
          at,
          watched: true,
          window: windowMs,
          reason: "the endpoint was removed",
          more: {}
        })
    }
  )

  #countsOf(key: string, { config }: LiveEndpoint, at: number): AlertCounts {
    const page = this.#options.windows.page(key)
    return page?.generation === config.generation ? page.window.read(at) : noAlertCounts
  }

  #stateOf(key: string, { config }: LiveEndpoint, now: number): EndpointAvailability {
    const known = this.#options.health(key)
    const page = this.#options.windows.page(key)
    const isOpen = known?.generation === config.generation && known.circuit.state !== "closed"
    if (isOpen) this.#openAt.set(key, now)
    return {
      isOpen,
      closedFor: now - (this.#openAt.get(key) ?? this.#began),
      isDisabled: config.disabled !== undefined,
      isSuspended: config.suspended !== undefined,
      inARow: page?.generation === config.generation ? (page.row ?? "none") : "unknown",
      failuresInRow: page?.generation === config.generation ? page.failuresInRow : undefined
    }
  }

  #moreOf(key: string, { config }: LiveEndpoint): SubjectReadings["more"] {
    const { windows, health, thresholds } = this.#options
    const page = windows.page(key)
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
      ...(lastError === undefined ? {} : { lastError })
    }
  }
}

type PartitionAlertsOptions = Omit<EndpointAlertsOptions, "windows" | "health">

/** Counts outcomes of one partition and raises the alerts about its endpoints. */
export const makePartitionAlerts = Effect.fnUntraced(function* (options: PartitionAlertsOptions) {
  const directory = yield* Directory
  const windows = new AlertWindows(options.thresholds)
  return {
    windows,
    /** Counts a delivery that was dead-lettered at a time (ms since the epoch). */
    onDeadLettered: (delivery: Delivery, progress: Progress, at: number): void => {
      const known = directory.find(endpointKey(delivery.tenant, delivery.endpoint))
      windows.onDeadLettered(delivery, progress, at, known?.config.alerts)
    },
    /** Raises and clears alerts for as long as the scope lives. */
    watch: (health: (key: string) => Health | undefined) =>
      runEndpointAlerts({ ...options, windows, health })
  }
})

export type PartitionAlerts = Effect.Success<ReturnType<typeof makePartitionAlerts>>
