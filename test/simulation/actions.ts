/* What is done to an installation from outside, as data: drawn from a seed, or written by hand. */
import type { FailpointName } from "../../src/broker/failpoint.ts"
import type { Chance } from "./chance.ts"
import { chanceOf } from "./chance.ts"
import type { Answer, Behaviour } from "./receivers.ts"

/** How much is sent to an endpoint, and for how long. */
export interface EndpointLimits {
  readonly maxInFlight: number
  /** Whether its circuit opens after some failures. */
  readonly hasCircuit: boolean
  /** How long after an event its deliveries are tried, ms. */
  readonly windowMs: number
  /** What is sent to it a second at most. (Default: no bound) */
  readonly rate?: { readonly perSecond: number; readonly burst: number } | undefined
}

/** An endpoint that there is from the beginning, and how its receiver behaves. */
export interface PlannedEndpoint extends Behaviour, EndpointLimits {
  readonly types: ReadonlyArray<string>
}

/** One installation and its surroundings. Times in ms. */
export interface Plan {
  readonly workers: number
  readonly partitions: number
  readonly endpoints: ReadonlyArray<PlannedEndpoint>
  readonly ackWaitMs: number
  /** How long events are published, and faults injected. */
  readonly activeMs: number
  /** The bound for everything's end after that. */
  readonly calmMs: number
  /** Share of answers that the broker's clients do not get. */
  readonly lostAnswers: number
  /** Share of acknowledgements that the broker does not get. */
  readonly lostAcks: number
  /** Deliveries of a partition that wait by NAK; beyond it schedules are used. */
  readonly maxWaiting: number
  /** Concurrent requests to the host of all endpoints; undefined for no cap. */
  readonly hostCap: number | undefined
  /** Size of DEAD while faults are injected, bytes; undefined for enough. */
  readonly deadBytes: number | undefined
  /** How long dead letters are kept, ms. (Default: long enough) */
  readonly deadAgeMs?: number | undefined
  /** How long events are kept, ms. */
  readonly eventAgeMs: number
  /** Size beyond which the history drops its oldest facts, bytes; undefined for enough. */
  readonly historyBytes: number | undefined
  /** True where retries leave their bodies in their events. (Default: large ones only) */
  readonly leavesBodies?: boolean | undefined
  /** How far copies of streams are behind their leader, ms; 0 for streams with one copy. */
  readonly replicaLagMs: number
}

interface Timed {
  readonly at: number
}

/** One thing that is done. `worker` and `endpoint` are indexes, `ms` is how long it lasts. */
export type Action = Timed &
  (
    | { readonly does: "publish"; readonly id: string; readonly type: string }
    | {
        readonly does: "crash" | "break" | "pause" | "roll" | "lag" | "stall"
        readonly worker: number
        readonly ms: number
      }
    | {
        readonly does: "step-clock"
        readonly worker: number
        readonly by: number
        readonly ms: number
      }
    | {
        /** A crash at a failpoint, when it is reached for the `nth` time from then on. */
        readonly does: "crash-at"
        readonly worker: number
        readonly ms: number
        readonly step: FailpointName
        readonly nth: number
      }
    | {
        readonly does: "kill-broker"
        readonly ms: number
        /** How much each work queue and its consumer forget of what they did last. */
        readonly forgets: number
      }
    | {
        readonly does: "cut-power"
        readonly ms: number
        /** How many messages each stream loses at most. */
        readonly lost: number
        /** Endpoints, leases and alerts lose their ends, too. */
        readonly buckets?: boolean
      }
    | {
        /** The leader of a stream steps down; the next one comes after a time. */
        readonly does: "elect"
        readonly stream: number
        readonly ms: number
      }
    | {
        readonly does: "repartition"
        readonly to: number
        /** Where the command dies when it is run first. */
        readonly dies?: FailpointName
      }
    | { readonly does: "stick-stream"; readonly stream: number; readonly ms: number }
    | {
        readonly does: "retype" | "disable" | "hold" | "remove"
        readonly endpoint: number
        readonly ms: number
      }
    | {
        readonly does: "redeliver" | "replay"
        readonly endpoint: number
        /** Where its process dies. */
        readonly dies?: "round-claimed" | "round-stored"
      }
    | {
        /** One delivery is sent once more. */
        readonly does: "resend"
        readonly endpoint: number
        /** Which of the events published until then, counted from the last one. */
        readonly event: number
        /** Where its process dies. */
        readonly dies?: "round-claimed" | "round-stored"
      }
    | { readonly does: "retry-now" | "discard"; readonly endpoint: number }
    | { readonly does: "limit"; readonly endpoint: number; readonly limits: EndpointLimits }
    | {
        /** Concurrent requests to the host of all endpoints. */
        readonly does: "limit-host"
        readonly hostCap: number
      }
    | { readonly does: "audit" }
  )

export type Deed = Action["does"]

/** All that `does` names, for tables. */
export const deeds = [
  "publish",
  "crash",
  "crash-at",
  "break",
  "pause",
  "roll",
  "lag",
  "stall",
  "step-clock",
  "kill-broker",
  "cut-power",
  "stick-stream",
  "elect",
  "repartition",
  "retype",
  "disable",
  "hold",
  "remove",
  "redeliver",
  "replay",
  "resend",
  "discard",
  "retry-now",
  "limit",
  "limit-host",
  "audit"
] as const satisfies ReadonlyArray<Deed>

const types = ["invoice.paid", "invoice.sent", "user.made"]
const failures: ReadonlyArray<ReadonlyArray<Answer>> = [
  [500, 503, 429, "timeout", "reset", "refused", 404],
  [500],
  ["timeout"],
  [503, 429],
  [400, 500]
]

/** The failpoints that a worker reaches. */
const steps: ReadonlyArray<FailpointName> = [
  "plan-stored",
  "delivery-stored",
  "event-routed",
  "answered",
  "decided",
  "dead-stored",
  "outcome-stored",
  "end-stored",
  "moved",
  "postponed",
  "released",
  "alert-decided",
  "alert-stored"
]

/** The failpoints that a change of the number of partitions reaches. */
const stepsOfRepartition: ReadonlyArray<FailpointName> = [
  "moved",
  "postponed",
  "partition-closed",
  "stream-removed"
]

const endpointOf = (chance: Chance, failing: number): PlannedEndpoint => ({
  types: chance.isHit(0.7) ? [">"] : ["invoice.>"],
  maxInFlight: chance.pick([1, 3, 10]),
  hasCircuit: chance.isHit(0.4),
  // Longer only makes seeds longer.
  windowMs: chance.isHit(0.2) ? 15_000 : 120_000,
  // One in eight never answers well.
  failing: failing > 0 && chance.isHit(0.125) ? 1 : failing,
  failures: chance.pick(failures),
  slowMs: chance.pick([5, 50, 500, 2_000]),
  isMoved: chance.isHit(0.1),
  retryAfter: chance.pick([1, 4, 12])
})

/** Draws an installation. Each fault is there in half of the seeds at most. */
export const planOf = (seed: number): Plan => {
  const chance = chanceOf(seed, "plan")
  const some = <A>(draw: () => A, otherwise: A, share = 0.5): A =>
    chance.isHit(share) ? draw() : otherwise
  const failing = some(() => chance.between(0.05, 0.6), 0)
  const more = chanceOf(seed, "plan", "more")
  const rateOf = () =>
    more.isHit(0.12) ? { perSecond: more.pick([0.5, 2, 10]), burst: more.pick([1, 3]) } : undefined
  const deadAgeMs = more.isHit(0.1) ? more.pick([5_000, 20_000]) : undefined
  return {
    deadAgeMs,
    leavesBodies: chanceOf(seed, "plan", "bodies").isHit(0.5),
    workers: 1 + chance.int(3),
    partitions: chance.pick([1, 2, 2, 4]),
    endpoints: Array.from({ length: 1 + chance.int(5) }, () => ({
      ...endpointOf(chance, failing),
      rate: rateOf()
    })),
    ackWaitMs: chance.pick([5_000, 5_000, 5_000, 15_000]),
    // In one of ten it lasts long enough for several watermarks.
    activeMs: chance.isHit(0.1) ? chance.between(60_000, 120_000) : chance.between(15_000, 35_000),
    // A round whose contents are gone ends after an hour.
    calmMs: 75 * 60_000,
    lostAnswers: some(() => chance.between(0.001, 0.05), 0),
    lostAcks: some(() => chance.pick([0.02, 0.1, 0.3, 0.6]), 0),
    maxWaiting: chance.pick([1, 3, 20_000]),
    hostCap: some(() => 2 + chance.int(4), undefined, 0.3),
    deadBytes: some(() => 4_000, undefined, 0.1),
    eventAgeMs: some(() => chance.pick([5_000, 20_000]), 7 * 24 * 3_600_000, 0.15),
    historyBytes: some(() => chance.pick([30_000, 60_000]), undefined, 0.08),
    replicaLagMs: some(() => chance.pick([5, 100, 2_000]), 0, 0.15)
  }
}

/** Draws what is done, in no order. */
export const actionsOf = (seed: number, plan: Plan): ReadonlyArray<Action> => {
  const chance = chanceOf(seed, "actions")
  const { activeMs, endpoints, workers } = plan
  const when = () => chance.between(0, activeMs)
  const worker = () => chance.int(workers)
  const endpoint = () => chance.int(endpoints.length)
  const actions: Array<Action> = []
  const some = (share: number, most: number, draw: () => Action) => {
    const count = chance.isHit(share) ? 1 + chance.int(most) : 0
    for (let i = 0; i < count; i++) actions.push(draw())
  }
  const publish = (at: number) => {
    const id = `acme.e${actions.length}`
    actions.push({ at, does: "publish", id, type: chance.pick(types) })
  }
  const events = Math.round((10 + chance.int(30)) * Math.max(1, activeMs / 60_000))
  for (let i = 0; i < events; i++) publish(when())
  const bursts = chance.int(3)
  for (let i = 0; i < bursts; i++) {
    const at = when()
    const size = 8 + chance.int(20)
    for (let n = 0; n < size; n++) publish(at + n)
  }
  const lasting = (most: number) => ({
    at: when(),
    worker: worker(),
    ms: chance.between(100, most)
  })
  // One in six holds an endpoint from the beginning, for most of the time, so that much waits for it.
  if (chance.isHit(0.17))
    actions.push({
      at: 0,
      does: "hold",
      endpoint: endpoint(),
      ms: activeMs * chance.between(0.5, 1)
    })
  some(0.3, 3, () => ({
    does: "crash-at",
    step: chance.pick(steps),
    nth: 1 + chance.int(4),
    ...lasting(15_000)
  }))
  some(0.1, 2, () => ({ does: "stall", ...lasting(20_000) }))
  some(0.4, 3, () => ({ does: "crash", ...lasting(15_000) }))
  some(0.4, 3, () => ({ does: "break", ...lasting(20_000) }))
  some(0.3, 3, () => ({ does: "pause", ...lasting(20_000) }))
  some(0.25, 2, () => ({ does: "roll", ...lasting(5_000) }))
  some(0.25, 2, () => ({ does: "lag", ...lasting(20_000) }))
  some(0.1, 2, () => ({
    does: "step-clock",
    by: chance.between(-60_000, 60_000),
    ...lasting(20_000)
  }))
  some(0.2, 2, () => ({
    does: "kill-broker",
    at: when(),
    ms: chance.between(100, 12_000),
    forgets: chance.isHit(0.5) ? 1 + chance.int(8) : 0
  }))
  some(0.1, 1, () => ({
    does: "cut-power",
    at: when(),
    ms: chance.between(100, 8_000),
    lost: 1 + chance.int(12)
  }))
  some(0.15, 2, () => ({
    does: "stick-stream",
    at: when(),
    stream: chance.int(4),
    ms: chance.between(1_000, 20_000)
  }))
  const ofEndpoint = (most: number) => ({
    at: when(),
    endpoint: endpoint(),
    ms: chance.between(100, most)
  })
  some(0.3, 4, () => ({ does: "retype", ...ofEndpoint(1_000) }))
  some(0.15, 2, () => ({ does: "disable", ...ofEndpoint(10_000) }))
  some(0.2, 2, () => ({ does: "hold", ...ofEndpoint(15_000) }))
  some(0.1, 1, () => ({ does: "remove", ...ofEndpoint(10_000) }))
  const round = (does: "redeliver" | "replay"): Action => ({
    ...{ does, at: when(), endpoint: endpoint() },
    ...(chance.isHit(0.3) ? { dies: chance.pick(["round-claimed", "round-stored"] as const) } : {})
  })
  some(0.25, 2, () => round("redeliver"))
  some(0.2, 2, () => round("replay"))
  const all = [
    ...actions,
    ...moreOf(seed, plan),
    ...retriesOf(seed, plan),
    ...cutsOf(seed, plan),
    ...singlesOf(seed, plan),
    ...limitsOf(seed, plan),
    ...auditsOf(seed, plan)
  ]
  const quiet = quietOf(seed, plan)
  return [
    ...all.filter(({ at, does }) => does !== "publish" || at < quiet.from),
    ...quiet.actions
  ].map((action) =>
    action.does === "cut-power"
      ? { ...action, buckets: chanceOf(seed, "buckets").isHit(0.5) }
      : action
  )
}

/** Faults that came later have a generator of their own: a seed keeps the others that it had. */
const moreOf = (seed: number, { activeMs }: Plan): ReadonlyArray<Action> => {
  const chance = chanceOf(seed, "more")
  const actions: Array<Action> = []
  const elections = chance.isHit(0.15) ? 1 + chance.int(4) : 0
  for (let n = 0; n < elections; n++)
    actions.push({
      does: "elect",
      at: chance.between(0, activeMs),
      stream: chance.int(64),
      ms: chance.between(100, 6_000)
    })
  const changes = chance.isHit(0.12) ? 1 + chance.int(2) : 0
  for (let n = 0; n < changes; n++)
    actions.push({
      does: "repartition",
      at: chance.between(0, activeMs),
      to: chance.pick([1, 2, 3, 5]),
      ...(chance.isHit(0.4) ? { dies: chance.pick(stepsOfRepartition) } : {})
    })
  return actions
}

/** What an operator lets go on now, by a generator of its own as well. */
const retriesOf = (seed: number, { activeMs, endpoints }: Plan): ReadonlyArray<Action> => {
  const chance = chanceOf(seed, "retries")
  // Nothing waits for the others.
  const failing = endpoints.flatMap((endpoint, index) => (endpoint.failing > 0 ? [index] : []))
  const count = failing.length > 0 && chance.isHit(0.4) ? 1 + chance.int(6) : 0
  return Array.from({ length: count }, () => ({
    does: "retry-now",
    at: chance.between(0, activeMs),
    endpoint: chance.pick(failing)
  }))
}

/** What an operator does about single deliveries and dead letters, by a generator of its own as well. */
const singlesOf = (seed: number, { activeMs, endpoints }: Plan): ReadonlyArray<Action> => {
  const chance = chanceOf(seed, "singles")
  const drawn = () => ({
    at: chance.between(0, activeMs),
    endpoint: chance.int(endpoints.length)
  })
  const resent = chance.isHit(0.2) ? 1 + chance.int(6) : 0
  const discarded = chance.isHit(0.1) ? 1 + chance.int(2) : 0
  return [
    ...Array.from({ length: resent }, () => ({
      ...{ does: "resend" as const, ...drawn(), event: chance.int(8) },
      ...(chance.isHit(0.3)
        ? { dies: chance.pick(["round-claimed", "round-stored"] as const) }
        : {})
    })),
    ...Array.from({ length: discarded }, () => ({ does: "discard" as const, ...drawn() }))
  ]
}

/** Audits while everything moves, by a generator of its own as well. */
const auditsOf = (seed: number, { activeMs }: Plan): ReadonlyArray<Action> => {
  const chance = chanceOf(seed, "audits")
  const count = chance.isHit(0.3) ? 1 + chance.int(4) : 0
  return Array.from({ length: count }, () => ({
    does: "audit",
    at: chance.between(0, activeMs)
  }))
}

const rates = [undefined, { perSecond: 0.5, burst: 1 }, { perSecond: 10, burst: 3 }]

/** Limits that an operator changes while deliveries wait for them, by a generator of its own as well. */
const limitsOf = (seed: number, { activeMs, endpoints, hostCap }: Plan): ReadonlyArray<Action> => {
  const chance = chanceOf(seed, "limits")
  const count = chance.isHit(0.15) ? 1 + chance.int(6) : 0
  const ofHost = hostCap !== undefined && chance.isHit(0.3) ? 1 + chance.int(3) : 0
  return [
    ...Array.from({ length: count }, () => ({
      does: "limit" as const,
      at: chance.between(0, activeMs),
      endpoint: chance.int(endpoints.length),
      limits: {
        maxInFlight: chance.pick([1, 3, 10]),
        hasCircuit: chance.isHit(0.4),
        windowMs: chance.pick([15_000, 120_000]),
        rate: chance.pick(rates)
      }
    })),
    ...Array.from({ length: ofHost }, () => ({
      does: "limit-host" as const,
      at: chance.between(0, activeMs),
      hostCap: 1 + chance.int(6)
    }))
  ]
}

/** Further power cuts, so that one meets what another has left. */
const cutsOf = (seed: number, { activeMs }: Plan): ReadonlyArray<Action> => {
  const chance = chanceOf(seed, "cuts")
  const count = chance.isHit(0.1) ? 2 + chance.int(2) : 0
  return Array.from({ length: count }, () => ({
    does: "cut-power",
    at: chance.between(0, activeMs),
    ms: chance.between(100, 8_000),
    lost: 1 + chance.int(12)
  }))
}

/**
 * Nothing is published any more once a worker stands still: what it was writing just then arrives
 * after others have taken over, and nothing that is written meanwhile keeps it away.
 */
const quietOf = (seed: number, { activeMs, endpoints, workers }: Plan) => {
  const chance = chanceOf(seed, "quiet")
  const from = chance.isHit(0.1)
    ? chance.between(2_000, Math.min(activeMs, 15_000))
    : Number.POSITIVE_INFINITY
  const actions: Array<Action> = []
  if (from === Number.POSITIVE_INFINITY) return { from, actions }
  const last = 2 + chance.int(6)
  for (let n = 0; n < last; n++) {
    const at = from - chance.between(0, 40)
    actions.push({ at, does: "publish", id: `acme.last${n}`, type: chance.pick(types) })
  }
  for (const endpoint of endpoints.keys())
    if (chance.isHit(0.5))
      actions.push({ at: 0, does: "hold", endpoint, ms: from + chance.between(5_000, 40_000) })
  const at = from - chance.between(0, 30)
  const worker = chance.int(workers)
  actions.push({ at, does: "stall", worker, ms: chance.between(9_000, 20_000) })
  return { from, actions }
}
