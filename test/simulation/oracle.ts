/*
 * What must hold, judged from the broker's streams and the receivers' logs, never from the engine's
 * memory. What the broker itself lost after it had acknowledged it is excused, by name.
 */
import { Option, Schema } from "effect"
import { originStreams, referencesIn } from "../../src/domain/backlog-message.ts"
import type { Place } from "../../src/domain/fact.ts"
import { Fact, isSuccess, placeName, plannedOtherwise } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import type { Judgement } from "../../src/history/audit/judgement.ts"
import type { Status } from "../../src/operations/status/status-report.ts"
import type { EndpointLimits } from "./actions.ts"
import type { Received } from "./receivers.ts"
import type { ServerEvents } from "./server.ts"
import type { Pending } from "./server-consumer.ts"
import type { ModelStream, Stored } from "./server-stream.ts"
import { matches, millisOf } from "./server-stream.ts"
import type { Simulation } from "./simulation.ts"
import type { SimProcess } from "./world.ts"

/** What did not hold. */
export type FailureKind =
  | "unrouted"
  | "unfinished"
  | "wrong plan"
  | "stale plan"
  | "nothing planned it"
  | "ended in two ways"
  | "sent after its end"
  | "sent again after its failure"
  | "sent too early"
  | "over its cap"
  | "over its rate"
  | "Retry-After not heeded"
  | "over the host's cap"
  | "delivered without an answer"
  | "no dead letter"
  | "not by its owner"
  | "NAK not given"
  | "released too early"
  | "watermark too high"
  | "audit disagrees"
  | "status disagrees"
  | "defect"

export interface Failure {
  readonly kind: FailureKind
  readonly what: string
}

const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

/** A fact, and when the broker stored it, ms of the world's time. */
interface StoredFact extends Fact {
  /** It was held up on its way. */
  readonly isLate: boolean
  /** Who wrote it. */
  readonly writer: SimProcess | undefined
  readonly storedAt: number
  readonly seq: number
}

/** One round of a delivery. */
interface Round {
  readonly key: string
  readonly event: string
  readonly endpoint: string
  /** Terminal facts, as they were stored. */
  readonly ends: Array<StoredFact>
  readonly failures: Array<StoredFact>
  begun: boolean
}

interface PublishedEvent {
  readonly key: string
  readonly id: string
  readonly type: string
  readonly seq: number
  readonly storedAt: number
  /** The parts of its plan, as the history has them. */
  readonly plan: Array<StoredFact>
}

/** True where the history has the last part of a plan, and so has all of them. */
const isWhole = (parts: ReadonlyArray<StoredFact>): boolean =>
  parts.some(({ plan }) => plan?.last === true)

/** A change of an endpoint in its bucket. */
interface ConfigChange {
  readonly revision: number
  readonly storedAt: number
  /** Undefined for a removal. */
  readonly types: ReadonlyArray<string> | undefined
}

const terminal: ReadonlySet<string> = new Set(["delivered", "delivered-late", "dead-lettered"])
/** Time in which what is under way may still be sent or written, ms. */
const underWayMs = 100
/** How long after its command has an end, for who gave it, an owner may still go through what waits, ms. */
const retryLateMs = 30_000
/** How far a plan's directory may be behind its bucket, ms: 10 s as documented, and a margin. */
const maxStaleMs = 12_000
/** How long a decision may take from its fence to the stream, ms. */
const fenceMs = 1_000
/** How long a worker that hands a partition over may be held up, ms. */
const handOverMs = 40_000
/** The time in which the requests to an endpoint with a rate are counted, ms. */
const rateMs = 5_000
/** Time until all workers use the share that is left to them beside a new one, ms. */
const joiningMs = 5_000
/** After a disturbance, shares of a host's cap may differ between workers so long, ms. */
const unsettledMs = 20_000

export class Oracle implements ServerEvents {
  readonly failures: Array<Failure> = []
  deliveries = 0
  repeats = 0
  readonly #sim: Simulation
  readonly #events = new Map<string, PublishedEvent>()
  readonly #rounds = new Map<string, Round>()
  readonly #excused = new Set<string>()
  /**
   * What is excused for want of its message only, and its round: once that is stored again it has
   * to end.
   */
  readonly #lostMessages = new Map<string, string>()
  /** Events that their router has acknowledged. */
  readonly #acknowledged = new Set<string>()
  readonly #configs = new Map<string, Array<ConfigChange>>()
  /** When operators let go on what waited, by endpoint. */
  readonly #retriesNow = new Map<string, Array<{ readonly from: number; until: number }>>()
  /** The last owner of each partition, and since when. */
  readonly #owners = new Map<number, { readonly worker: string; readonly since: number }>()
  readonly #instances = new Map<string, string>()
  /** When each worker was asked last for a partition. */
  readonly #askedAt = new Map<string, number>()
  /** Dead letters ever stored, by sequence. */
  readonly #dead = new Map<number, Set<string>>()
  /** Lost answers to messages: `<stream> <seq>`. */
  readonly #lostAnswers = new Set<string>()
  /** How often each round was stored in a queue or backlog. */
  readonly #places = new Map<string, number>()
  /** The places that deliveries were moved from. */
  readonly #movedFrom = new Set<string>()
  /** NAKs that facts promise: `<stream> <seq>`. */
  readonly #promisedNaks = new Map<string, StoredFact>()
  #open = 0
  #unplanned = 0
  #disturbedAt = Number.NEGATIVE_INFINITY
  #hasLoss = false
  /** True once a tenant's settings are lost, of which the cap of the host is one. */
  #hasLostCap = false
  /** True once the notes are lost by which a worker finishes what others have claimed. */
  #hasLostNotes = false
  /** True once the history has dropped what may be needed: its owners know less, and may repeat. */
  #hasWrapped = false

  /** Limits that an endpoint has had, and the loosest cap of the host. */
  readonly #limits: ReadonlyMap<string, Array<EndpointLimits>>
  #hostCap: number | undefined

  constructor(sim: Simulation) {
    this.#sim = sim
    this.#limits = new Map(sim.plan.endpoints.map((limits, index) => [`hook${index}`, [limits]]))
    this.#hostCap = sim.plan.hostCap
    sim.receivers.onBegun = (endpoint) => this.#begun(endpoint)
  }

  get excused(): number {
    return this.#excused.size
  }

  /** True once every event has its plan and every round its end. */
  get isDone(): boolean {
    return this.#open <= 0 && this.#unplanned <= 0
  }

  fail(kind: FailureKind, what: string): void {
    // One of a kind tells enough.
    if (this.failures.filter((each) => each.kind === kind).length >= 5) return
    this.#sim.world.trace(`FAILS: ${kind}: ${what}`)
    this.failures.push({ kind, what })
  }

  /** An operator lets go on what waits for an endpoint, until the returned function is called. */
  retriesNow(endpoint: string): () => void {
    const { world } = this.#sim
    const retry = { from: world.now, until: Number.POSITIVE_INFINITY }
    this.#retriesNow.set(endpoint, [...(this.#retriesNow.get(endpoint) ?? []), retry])
    return () => {
      retry.until = world.now
    }
  }

  /** True where a delivery whose attempt failed then may have been let go on by another time. */
  #mayGoOn(endpoint: string, failedAt: number, by: number): boolean {
    const retries = this.#retriesNow.get(endpoint) ?? []
    return retries.some(({ from, until }) => from <= by && failedAt <= until + retryLateMs)
  }

  /** Something is done to the installation, and lasts for a time, ms. */
  disturbed(ms: number): void {
    this.#disturbedAt = Math.max(this.#disturbedAt, this.#sim.world.now + ms)
  }

  /** An operator changes what may be sent to an endpoint: its workers may know either. */
  limited(endpoint: string, limits: EndpointLimits): void {
    this.#limits.get(endpoint)?.push(limits)
  }

  /** An operator changes what may be sent to the host at the same time. */
  limitedHost(hostCap: number): void {
    this.#hostCap = Math.max(this.#hostCap ?? 0, hostCap)
  }

  /** A worker starts: the others learn of it by its heartbeat. */
  joined(): void {
    this.disturbed(joiningMs - unsettledMs)
  }

  /** A killed broker has forgotten what waits for which NAK. */
  forgot(): void {
    this.#promisedNaks.clear()
  }

  /**
   * Dead letters may expire. Where the full history drops a fact, a plan or claim that is still
   * needed is lost with it.
   */
  dropped(stream: ModelStream, message: Stored): void {
    if (stream.name !== this.#sim.names.history) return
    if (!this.#hasWrapped) this.#sim.server.count("full history")
    this.#hasWrapped = true
    const fact = Option.getOrUndefined(decodeFact(message.data.toString()))
    if (fact?.eventSeq === undefined) return
    const key = eventKey(fact.eventSeq, fact.eventAt ?? 0)
    const isOpen = [...this.#rounds.values()].some(
      ({ ends, event }) => event === key && ends.length === 0
    )
    if (isOpen || !this.#acknowledged.has(key)) this.#excused.add(key)
    this.#count()
  }

  stored(stream: ModelStream, message: Stored): void {
    const { names } = this.#sim
    if (stream.name === names.history) this.#fact(message)
    else if (stream.name === names.events) this.#event(message)
    else if (stream.name === `KV_${names.buckets.endpoints}`) this.#config(message)
    else if (stream.name === `KV_${names.buckets.workers}`) this.#lease(message)
    else if (stream.name === names.dead) {
      const of = this.#dead.get(message.seq) ?? new Set()
      this.#dead.set(message.seq, of.add(deliveryIn(message)))
      this.#moved(message)
    } else if (stream.name.includes("DELIVERIES") || stream.name.includes("BACKLOG")) {
      for (const { delivery, origin, round } of this.#deliveriesIn(stream.name, message)) {
        const key = `${delivery}.${round}`
        this.#sim.world.note(() => `${stream.name} ${message.seq} holds ${key}, from ${origin}`)
        this.#places.set(key, (this.#places.get(key) ?? 0) + 1)
        if (this.#lostMessages.get(delivery) === round) {
          this.#lostMessages.delete(delivery)
          this.#excused.delete(delivery)
          this.#count()
        }
        if (origin !== undefined) this.#movedFrom.add(origin)
        if (round === "0" && !message.headers.has("Nats-Schedule")) this.#queued(delivery)
      }
    }
  }

  answered(
    { consumer, stream }: { readonly stream: string; readonly consumer: string },
    seq: number,
    payload: string,
    isLost: boolean,
    by: SimProcess
  ): void {
    const { events, routerConsumer } = this.#sim.names
    if (stream === events && payload.startsWith("+ACK")) {
      // The routers' own consumer says that an event is routed, whichever way it went.
      if (consumer === routerConsumer) this.#routed(seq, isLost)
      else this.#sim.server.count("an event passed by a bypass")
    }
    if (!stream.includes("DELIVERIES")) return
    this.#sim.world.trace(`${by.name} answers ${stream} ${seq} ${payload}${isLost ? ", lost" : ""}`)
    const key = `${stream} ${seq}`
    if (isLost) this.#lostAnswers.add(key)
    else if (!payload.startsWith("+WPI")) this.#promisedNaks.delete(key)
    if (payload.startsWith("+ACK")) this.#released(stream, seq)
  }

  told(subject: string): void {
    const [, instance] = subject.split(".hand-over.")
    const worker = this.#instances.get(instance ?? "")
    if (worker !== undefined) this.#askedAt.set(worker, this.#sim.world.now)
  }

  /** A message whose NAK is promised by the history waits for it, and not for its ack wait. */
  expired(stream: ModelStream, seq: number, { deliveredAt }: Pending): void {
    const key = `${stream.name} ${seq}`
    const promised = this.#promisedNaks.get(key)
    this.#promisedNaks.delete(key)
    if (promised === undefined || promised.storedAt < deliveredAt) return
    // What has ended meanwhile is removed: nothing is redelivered.
    if (stream.get(seq) === undefined) return
    const { workers, world } = this.#sim
    // Who records what another had decided has its message not in flight.
    const by = workers.find(
      (each) => each?.process === promised.writer && `w${each?.index}` === promised.worker
    )
    if (by === undefined || this.#lostAnswers.has(key) || this.#hasLoss) return
    // Before a NAK on another connection the message is read, and that answer may be lost.
    if (this.#sim.plan.lostAnswers > 0) return
    // From the fact to the NAK it had one connection, and nothing held it up.
    const { connection, process } = by
    const isUndisturbed =
      connection.isConnected &&
      connection.connectedAt < promised.storedAt &&
      process.resumedAt < promised.storedAt &&
      connection.wasStalledUntil < promised.storedAt &&
      by.startedAt < promised.storedAt &&
      promised.storedAt < world.now - 1_000
    if (isUndisturbed) this.fail("NAK not given", `${key}, promised by ${factName(promised)}`)
  }

  /** The broker has lost a message that it had acknowledged. */
  lost(stream: ModelStream, message: Stored): void {
    const { names } = this.#sim
    this.#hasLoss = true
    const [, bucket, ...key] = message.subject.split(".")
    if (bucket === names.buckets.endpoints && key.length === 1) this.#hasLostCap = true
    if (message.subject.startsWith(`$KV.${names.buckets.workers}.rounds.`))
      this.#hasLostNotes = true
    if (stream.name === names.events) {
      const key = eventKey(message.seq, millisOf(message.time))
      this.#excused.add(key)
    } else if (stream.name === names.history) {
      const fact = Option.getOrUndefined(decodeFact(message.data.toString()))
      if (fact?.eventSeq === undefined) return
      const key = eventKey(fact.eventSeq, fact.eventAt ?? 0)
      const what = fact.plan === undefined ? `${key}.${fact.endpoint}` : key
      this.#excused.add(what)
      this.#lostMessages.delete(what)
    } else if (!stream.name.startsWith("KV_"))
      for (const { delivery, round } of this.#deliveriesIn(stream.name, message)) {
        // Of several rounds none is told apart.
        if (!this.#excused.has(delivery)) this.#lostMessages.set(delivery, round)
        else if (this.#lostMessages.get(delivery) !== round) this.#lostMessages.delete(delivery)
        this.#excused.add(delivery)
      }
    this.#count()
  }

  /** The broker gives sequences of a stream again. Of what they held nothing may be there. */
  setBack({ name }: ModelStream): void {
    if (name === this.#sim.names.events) this.#hasLoss = true
  }

  /** Judges what can be judged in the end only. */
  conclude(judgement: Judgement | string): void {
    const before = this.failures.length
    this.#judgeEnds()
    const isLost = this.failures.length > before
    if (this.#hasLoss) return
    if (!this.#hasWrapped) this.#judgeRequests()
    this.#judgeAudit(judgement, isLost)
  }

  /**
   * Judges an audit that was made while everything moved: as long as the broker has lost nothing, it
   * names no problem but rounds that ended in two ways.
   */
  judgeMeanwhile({ problems }: Judgement): void {
    if (this.#hasWrapped) return
    for (const { endpoint, eventSeq, kind, round, says } of problems.list) {
      const event = [...this.#events.values()].findLast(({ seq }) => seq === eventSeq)
      // What was lost may be missing, and confuse the rest.
      if (this.#hasLoss && (kind !== "missing" || this.#isExcused(event?.key ?? "", endpoint)))
        continue
      const { ends = [] } = this.#rounds.get(`${event?.key}.${endpoint}.${round}`) ?? {}
      if (kind === "contradiction" && isTwofold(ends)) continue
      // What a former owner stores late may change what becomes of a delivery whose letter is stored.
      if (kind === "dead-letter-without-fact" && this.#sim.server.injected.has("stall")) continue
      this.fail("audit disagrees", `meanwhile: ${kind} ${eventSeq}.${endpoint}.${round}: ${says}`)
    }
  }

  /**
   * Where all is done, the status knows nothing that waits, and no problem. It has one while an event
   * is not routed.
   */
  judgeStatus(status: Status | string): void {
    const fail = (what: string) => this.fail("status disagrees", what)
    if (typeof status === "string") {
      fail(status)
      return
    }
    const { deliveries, events, problems } = status
    const { injected } = this.#sim.server
    // Without its acknowledgement an event counts as not routed, and a delivery as waiting.
    const isUnheard = ["an acknowledgement lost", "an answer lost"].some((one) => injected.has(one))
    const told = problems.filter(
      ({ code, text }) =>
        // The model has no sources.
        !text.startsWith("KV_petrel_sources is missing") &&
        !(code === "disk-failed" && injected.has("stick-stream")) &&
        // It may be so still.
        !(code === "clock-wrong" && injected.has("step-clock")) &&
        !(code === "routing-stopped" && isUnheard)
    )
    if (this.failures.some(({ kind }) => kind === "unrouted") && told.length === 0)
      fail("it has no problem, and an event is not routed")
    if (!this.isDone || this.#mayRepeat || this.failures.length > 0) return
    for (const { text } of told) fail(`all is done, and it says: ${text}`)
    const waiting = deliveries.waiting + (events.waitingForRouter ?? 0)
    if (waiting > 0 && !isUnheard) fail(`all is done, and of it ${waiting} wait`)
  }

  /** True where an owner may not know what has ended. */
  get #mayRepeat(): boolean {
    return this.#hasLoss || this.#hasWrapped
  }

  #isExcused(eventKey: string, endpoint?: string): boolean {
    if (this.#excused.size === 0) return false
    return this.#excused.has(eventKey) || this.#excused.has(`${eventKey}.${endpoint}`)
  }

  #event(message: Stored): void {
    const at = millisOf(message.time)
    const key = eventKey(message.seq, at)
    const id = message.headers.get("Nats-Msg-Id") ?? ""
    const type = message.subject.split(".").slice(2).join(".")
    const { now } = this.#sim.world
    this.#sim.world.note(() => `event ${key} is ${id}, a ${type}`)
    this.#events.set(key, { key, id, type, seq: message.seq, storedAt: now, plan: [] })
    this.#unplanned++
  }

  #config(message: Stored): void {
    const key = message.subject.split(".").slice(2).join(".")
    const [, endpoint] = key.split(".")
    if (endpoint === undefined || !endpoint.startsWith("hook")) return
    const isRemoved = message.headers.has("KV-Operation")
    const types = isRemoved ? undefined : JSON.parse(message.data.toString()).types
    const changes = this.#configs.get(endpoint) ?? []
    changes.push({ revision: message.seq, storedAt: this.#sim.world.now, types })
    this.#configs.set(endpoint, changes)
  }

  #lease({ data, subject }: Stored): void {
    const { now } = this.#sim.world
    const [kind, index] = subject.split(".").slice(2)
    const text = data.toString()
    if (kind === "owner" && text !== "") {
      const { instance, worker } = JSON.parse(text)
      this.#instances.set(instance, worker)
      // Not the last owner's key: what a worker writes there may arrive after its lease has ended.
      if (this.#owners.get(Number(index))?.worker !== worker)
        this.#owners.set(Number(index), { worker, since: now })
    }
    if (kind === "watermark" && text !== "") {
      this.#watermark(Number(index), JSON.parse(text).seq)
      this.#settled(JSON.parse(text).seq)
    }
  }

  /** True where others had asked a process for a partition, in the time before. */
  #wasAsked({ name }: SimProcess, before: number): boolean {
    const askedAt = this.#askedAt.get(name.slice(0, name.lastIndexOf("."))) ?? 0
    return askedAt > before - handOverMs
  }

  /** The deliveries that a message of a queue or a backlog holds. */
  #deliveriesIn(stream: string, message: Stored): ReadonlyArray<Held> {
    const { headers, subject } = message
    const partition = Number(stream.slice(stream.lastIndexOf("_") + 1))
    const streams = originStreams(this.#sim.names, partition)
    const packed = referencesIn(subject, (name) => headers.get(name), streams)
    if (packed === undefined)
      return [
        {
          delivery: deliveryIn(message),
          round: headers.get("petrel-round") ?? "",
          origin: headers.get("petrel-origin")
        }
      ]
    return packed.map(({ endpoint, eventAt, eventSeq, origin, round }) => ({
      delivery: `${eventKey(eventSeq, eventAt)}.${endpoint}`,
      ...{ round, origin }
    }))
  }

  #moved({ headers }: Stored): void {
    const origin = headers.get("petrel-origin")
    if (origin !== undefined) this.#movedFrom.add(origin)
  }

  /** An event is acknowledged: it has a plan, and each delivery of it is stored or has ended. */
  #routed(seq: number, isLost: boolean): void {
    if (this.#hasLoss) return
    const message = this.#sim.server.stream(this.#sim.names.events).get(seq)
    if (message === undefined) return
    const key = eventKey(seq, millisOf(message.time))
    if (this.#isExcused(key)) return
    // Where it is lost the event comes again, and needs its plan: the history must not drop it yet.
    if (!isLost) this.#acknowledged.add(key)
    const event = this.#events.get(key)
    const parts = event?.plan.flatMap(({ plan }) => (plan === undefined ? [] : [plan])) ?? []
    const planned = parts.flatMap(({ endpoints }) => endpoints)
    const missing = planned.find(({ id }) => {
      const round = `${key}.${id}.0`
      return !this.#places.has(round) && (this.#rounds.get(round)?.ends.length ?? 0) === 0
    })
    if (event === undefined || !isWhole(event.plan))
      this.fail("released too early", `${key} has no whole plan`)
    else if (missing !== undefined)
      this.fail("released too early", `${key}.${missing.id} has neither a message nor an end`)
  }

  /** A message of a queue is acknowledged: its delivery has ended, or is elsewhere. */
  #released(stream: string, seq: number): void {
    const message = this.#sim.server.stream(stream).get(seq)
    if (message === undefined || this.#hasLoss) return
    const key = `${deliveryIn(message)}.${message.headers.get("petrel-round")}`
    const hasEnded = (this.#rounds.get(key)?.ends.length ?? 0) > 0
    // An event that was routed twice may have left a copy in the backlog as well.
    const isElsewhere = (this.#places.get(key) ?? 0) > 1
    const place = `${stream}:${seq}:${millisOf(message.time)}`
    if (!hasEnded && !isElsewhere && !this.#movedFrom.has(place))
      this.fail("released too early", `${stream} ${seq}, ${key}`)
  }

  /** Whatever ended at or below a watermark is gone from its queue: no new owner reads of it. */
  #watermark(partition: number, seq: number): void {
    if (this.#mayRepeat) return
    const { backlog, deliveries } = this.#sim.names
    const queue = this.#sim.server.streams.get(deliveries(partition))
    if (queue === undefined) return
    // What its consumer has left behind is looked up in the whole history.
    const [consumer] = queue.consumers.values()
    const comesAgain = ({ seq, stream }: Place) =>
      stream !== queue.name ||
      consumer === undefined ||
      consumer.pending.has(seq) ||
      seq >= consumer.cursor
    const streams = [queue.name, backlog(partition)]
    for (const { ends } of this.#rounds.values())
      for (const end of ends) {
        const { from } = end
        if (end.seq > seq || from === undefined || !streams.includes(from.stream)) continue
        const left = this.#sim.server.streams.get(from.stream)?.get(from.seq)
        const isThere = left !== undefined && millisOf(left.time) === from.at
        if (isThere && comesAgain(from) && !this.#isKnownAsEnded(from))
          this.fail("watermark too high", `${seq}, above ${factName(end)} of ${placeName(from)}`)
      }
  }

  /**
   * A fact at or below a watermark is older than two whole ack waits, in which a message whose
   * acknowledgement was lost came again. A change of the partitions stores watermarks of new ones.
   */
  #settled(seq: number): void {
    const { names, plan, server, world } = this.#sim
    const fact = server.stream(names.history).get(seq)
    if (this.#hasLoss || fact === undefined || server.publisher?.name.startsWith("w") !== true)
      return
    const ageMs = world.wall - millisOf(fact.time)
    if (ageMs < 2 * plan.ackWaitMs - 1)
      this.fail("watermark too high", `${seq}, a fact that is ${ageMs} ms old`)
  }

  /** True where it is stored that an entry of a message that stays has ended. */
  #isKnownAsEnded({ at, entry, seq, stream }: Place): boolean {
    const { buckets } = this.#sim.names
    const key = `$KV.${buckets.retries}.${stream}.${seq}.${at}`
    const record =
      this.#sim.server.stream(`KV_${buckets.retries}`).lastOf(key)?.data.toString() ?? ""
    return entry !== undefined && record !== "" && JSON.parse(record).ended.includes(entry)
  }

  /** A delivery of a first round is queued: the history must have its plan. */
  #queued(key: string): void {
    const event = this.#events.get(key.slice(0, key.lastIndexOf(".")))
    if (
      (event?.plan ?? []).length === 0 &&
      !this.#isExcused(event?.key ?? "", key) &&
      !this.#hasLoss
    )
      this.fail("nothing planned it", key)
  }

  #fact(message: Stored): void {
    const decoded = Option.getOrUndefined(decodeFact(message.data.toString()))
    if (decoded === undefined) this.fail("defect", `no fact: ${message.subject}`)
    if (decoded?.eventSeq === undefined) return
    const { now } = this.#sim.world
    const writer = this.#sim.server.publisher
    const isLate = this.#sim.isStalled(writer, now - fenceMs)
    const fact: StoredFact = { ...decoded, storedAt: now, seq: message.seq, isLate, writer }
    this.#sim.world.trace(`fact ${message.seq} ${factName(fact)}`)
    const key = eventKey(fact.eventSeq ?? 0, fact.eventAt ?? 0)
    if (fact.plan !== undefined) this.#planned(key, fact)
    if (fact.endpoint === "_") return
    // Of an attempt that another plan does not name, a failure belongs to no delivery; a success
    // begins one, and ends it (docs/reference/facts.md).
    const isUnnamed = this.#isUnnamed(key, fact)
    if (isUnnamed && fact.kind === "attempt-failed") return
    const round = this.#roundOf(key, fact.endpoint, fact.round ?? "0")
    const isClaimed = fact.kind === "redelivered" || fact.kind === "replayed"
    if (isClaimed || (isUnnamed && isSuccess(fact.kind))) this.#begin(round)
    // A claimed round whose event or endpoint is gone is discarded.
    if (terminal.has(fact.kind) || fact.kind === "discarded") this.#ended(round, fact)
    else if (fact.kind === "attempt-failed") {
      round.failures.push(fact)
      this.#asked(fact, key)
      this.#byOwner(fact)
      if (fact.wait === "nak" && fact.from !== undefined)
        this.#promisedNaks.set(`${fact.from.stream} ${fact.from.seq}`, fact)
    }
  }

  /** True where an attempt is marked as planned otherwise, and the history has that other plan. */
  #isUnnamed(event: string, { endpoint, reason }: StoredFact): boolean {
    const parts = this.#events.get(event)?.plan ?? []
    return (
      reason === plannedOtherwise &&
      isWhole(parts) &&
      !parts.some(({ plan }) => plan?.endpoints.some(({ id }) => id === endpoint))
    )
  }

  /** What a receiver asked for is heeded, where its answer came. */
  #asked(fact: StoredFact, event: string): void {
    const { at, attempt, endpoint, nextAttemptAt, status, storedAt } = fact
    const { receivers } = this.#sim
    const id = this.#events.get(event)?.id
    const received = receivers.log.findLast(
      (each) => each.event === id && each.endpoint === endpoint && each.attempt === attempt
    )
    if (nextAttemptAt === undefined || received === undefined) return
    if (received.answer !== status || (status !== 429 && status !== 503)) return
    const askedMs = (receivers.behaviours.get(endpoint)?.retryAfter ?? 0) * 1_000
    // Another round of the same event may have the same attempt.
    if (received.at > storedAt || nextAttemptAt - at >= askedMs - underWayMs) return
    this.fail(
      "Retry-After not heeded",
      `${event}.${endpoint} ${attempt}: ${nextAttemptAt - at} ms instead of ${askedMs}`
    )
  }

  #roundOf(event: string, endpoint: string, round: string): Round {
    const key = `${event}.${endpoint}.${round}`
    const known = this.#rounds.get(key)
    if (known !== undefined) return known
    const made: Round = { key, event, endpoint, ends: [], failures: [], begun: false }
    this.#rounds.set(key, made)
    return made
  }

  #begin(round: Round): void {
    if (round.begun) return
    round.begun = true
    this.deliveries++
    this.#count()
  }

  #ended(round: Round, fact: StoredFact): void {
    if (fact.kind === "dead-lettered") {
      this.#byOwner(fact)
      const dead = fact.dead
      const isThere =
        dead !== undefined && this.#dead.get(dead)?.has(`${round.event}.${round.endpoint}`)
      if (isThere !== true && fact.reason !== "gone" && !this.#hasLoss)
        this.fail("no dead letter", factName(fact))
    }
    if (round.ends.length > 0) this.repeats++
    round.ends.push(fact)
    this.#count()
  }

  /** True for a round that somebody claimed and did not store, and whose note may be lost. */
  #isForgotten(key: string): boolean {
    return this.#hasLostNotes && !this.#places.has(key)
  }

  /** Counts what has not ended: seldom enough to count anew. */
  #count(): void {
    let open = 0
    for (const { begun, endpoint, ends, event, key } of this.#rounds.values())
      if (
        begun &&
        ends.length === 0 &&
        !this.#isExcused(event, endpoint) &&
        !this.#isForgotten(key)
      )
        open++
    this.#open = open
    let unplanned = 0
    for (const { key, plan } of this.#events.values())
      if (!isWhole(plan) && !this.#isExcused(key)) unplanned++
    this.#unplanned = unplanned
  }

  #planned(key: string, fact: StoredFact): void {
    const event = this.#events.get(key)
    const { plan } = fact
    if (event === undefined || plan === undefined) return
    if (event.plan[plan.part] !== undefined) return
    event.plan[plan.part] = fact
    for (const { id } of plan.endpoints) this.#begin(this.#roundOf(key, id, "0"))
    if (plan.last) this.#judgePlan(event, fact)
    this.#count()
  }

  #judgePlan(event: PublishedEvent, fact: StoredFact): void {
    const directory = fact.plan?.directory
    const parts = event.plan.flatMap(({ plan }) => (plan === undefined ? [] : [plan]))
    // Parts of several routers may be of several configurations.
    const isOfOne = parts.every((plan) => plan.directory === directory)
    if (directory === undefined || !isOfOne || this.#hasLoss) return
    const wanted: Array<string> = []
    let missedSince = Number.POSITIVE_INFINITY
    for (const [endpoint, changes] of this.#configs) {
      const types = changes.findLast(({ revision }) => revision <= directory)?.types
      if (types?.some((type) => matches(type, event.type)) === true) wanted.push(endpoint)
      const next = changes.find(({ revision }) => revision > directory)
      missedSince = Math.min(missedSince, next?.storedAt ?? missedSince)
    }
    const found = parts
      .flatMap(({ endpoints, skipped }) => [...endpoints, ...skipped])
      .map(({ id }) => id)
      .sort()
    if (found.join() !== wanted.sort().join())
      this.fail("wrong plan", `${event.id}: ${found} instead of ${wanted} at ${directory}`)
    // All parts are of the configuration of the first. Its own clock says when it was planned.
    const first = event.plan[0] ?? fact
    const plannedAt =
      first.kind === "routed" ? first.at - this.#sim.world.wall + this.#sim.world.now : 0
    const isClockRight = !this.#sim.server.injected.has("step-clock")
    if (isClockRight && plannedAt > missedSince + maxStaleMs)
      this.fail(
        "stale plan",
        `${event.id}: planned ${Math.round(plannedAt - missedSince)} ms after a change that it misses`
      )
  }

  /**
   * A decision about a delivery of a queue or backlog is carried out by the partition's owner,
   * whoever made it.
   */
  #byOwner(fact: StoredFact): void {
    const { names, partitions, server, world } = this.#sim
    const { publisher } = server
    if (fact.from === undefined || fact.from.stream === names.events || this.#hasLoss) return
    const owner = this.#owners.get(partitionOf(fact.tenant, fact.endpoint, partitions))
    if (owner === undefined || publisher === undefined || owner.since > world.now - fenceMs) return
    // What is held up on its way passed its fence in time.
    if (fact.isLate) return
    const isOwner = publisher.name.startsWith(`${owner.worker}.`)
    if (!isOwner && publisher.resumedAt < world.now - fenceMs)
      this.fail(
        "not by its owner",
        `${factName(fact)}, stored by ${publisher.name}: ${owner.worker} owns its partition`
      )
  }

  #begun(endpoint: string): void {
    const { plan, receivers, world } = this.#sim
    const isWell = (process: SimProcess) => this.#sim.isWell(process)
    const limits = this.#limits.get(endpoint) ?? []
    const cap = Math.max(0, ...limits.map(({ maxInFlight }) => maxInFlight))
    const own = receivers.inFlight((open) => open.endpoint === endpoint && isWell(open.from))
    if (own > cap && this.#disturbedAt < world.now - unsettledMs)
      this.fail("over its cap", `${endpoint} has ${own} requests, and takes ${cap}`)
    const hostCap = this.#hostCap
    if (hostCap === undefined || this.#hasLostCap) return
    if (this.#disturbedAt > world.now - unsettledMs) return
    const all = receivers.inFlight((open) => isWell(open.from))
    // Shares are rounded up.
    const most = hostCap + plan.workers - 1
    if (all > most) this.fail("over the host's cap", `${all} requests, ${most} at most`)
  }

  #judgeEnds(): void {
    for (const { id, key, plan } of this.#events.values())
      if (!isWhole(plan) && !this.#isExcused(key)) this.fail("unrouted", `${id} ${key}`)
    for (const { begun, endpoint, ends, event, key } of this.#rounds.values()) {
      if (this.#isExcused(event, endpoint)) continue
      if (!begun) this.fail("nothing planned it", key)
      else if (this.#isForgotten(key)) continue
      else if (ends.length === 0) this.fail("unfinished", key)
      if (!isTwofold(ends) || this.#mayRepeat) continue
      // What was held up on its way may be beside what the new owner decided. Who lives to see that
      // records a success as late as well, unless it has passed the partition on.
      const isHeldUp = ({ isLate, kind, storedAt, writer }: StoredFact) =>
        isLate &&
        (kind === "dead-lettered" || writer?.isAlive !== true || this.#wasAsked(writer, storedAt))
      if (!ends.some(isHeldUp)) this.fail("ended in two ways", key)
    }
  }

  #judgeRequests(): void {
    this.#judgeRates()
    const byDelivery = new Map<string, Array<Received>>()
    for (const received of this.#sim.receivers.log) {
      const key = `${received.event} ${received.endpoint}`
      const list = byDelivery.get(key) ?? []
      list.push(received)
      byDelivery.set(key, list)
    }
    const rounds = new Map<string, Array<Round>>()
    for (const round of this.#rounds.values()) {
      const key = `${this.#events.get(round.event)?.id} ${round.endpoint}`
      rounds.set(key, [...(rounds.get(key) ?? []), round])
    }
    for (const [key, all] of rounds) {
      const requests = byDelivery.get(key) ?? []
      for (const round of all)
        for (const end of round.ends)
          if (isSuccess(end.kind) && !requests.some(({ answer }) => answer === 200))
            this.fail("delivered without an answer", factName(end))
      // Attempts of further rounds have the same numbers.
      const [only] = all
      if (only !== undefined && all.length === 1) this.#judgeAttempts(only, requests)
      else this.#judgeLast(key, all, requests)
    }
  }

  /** Nothing is sent after the last of several rounds has ended. */
  #judgeLast(key: string, all: ReadonlyArray<Round>, requests: ReadonlyArray<Received>): void {
    const ends = all.map(({ ends }) =>
      ends.find(({ isLate, kind }) => kind !== "delivered-late" && !isLate)
    )
    const endedAt = Math.max(...ends.map((end) => end?.storedAt ?? Number.POSITIVE_INFINITY))
    for (const { attempt, begunAt, from } of requests)
      if (begunAt > endedAt + underWayMs && from.resumedAt <= begunAt - fenceMs)
        this.fail(
          "sent after its end",
          `${key} attempt ${attempt} from ${from.name}, after the last of ${all.length} rounds`
        )
  }

  /** No process sends more to an endpoint than its rate allows. */
  #judgeRates(): void {
    const { receivers } = this.#sim
    for (const [endpoint, limits] of this.#limits) {
      const rates = limits.flatMap(({ rate }) => (rate === undefined ? [] : [rate]))
      if (rates.length < limits.length) continue
      const maxInFlight = Math.max(...limits.map((each) => each.maxInFlight))
      const perSecond = Math.max(...rates.map((rate) => rate.perSecond))
      const burst = Math.max(...rates.map((rate) => rate.burst))
      const times = new Map<SimProcess, Array<number>>()
      for (const { begunAt, endpoint: to, from } of receivers.log)
        if (to === endpoint) times.set(from, [...(times.get(from) ?? []), begunAt])
      // Each change of the endpoint, and each return of it, begins anew with a burst. What was
      // admitted and waited for its body, as while the broker is silent, is sent at once.
      const bursts = 3 + (this.#configs.get(endpoint)?.length ?? 0)
      const most = (perSecond * rateMs) / 1_000 + burst * bursts + maxInFlight
      for (const [from, all] of times) {
        all.sort((a, b) => a - b)
        const beyond = all.find(
          (at, n) => (all[n + Math.ceil(most)] ?? Number.POSITIVE_INFINITY) < at + rateMs
        )
        if (beyond !== undefined)
          this.fail(
            "over its rate",
            `${endpoint} from ${from.name}: more than ${most} in ${rateMs} ms`
          )
      }
    }
  }

  #judgeAttempts(
    { ends, endpoint, failures, key }: Round,
    requests: ReadonlyArray<Received>
  ): void {
    const isClockRight = !this.#sim.server.injected.has("step-clock")
    for (const { attempt, begunAt, from } of requests) {
      // A process that was suspended could not know better.
      const isDazed = from.resumedAt > begunAt - fenceMs
      if (isDazed) continue
      const what = `${key} attempt ${attempt} from ${from.name} at ${(begunAt / 1000 - 1000).toFixed(3)}`
      // A former owner records its success beside the new owner, who need not know of it.
      const end = ends.find(({ isLate, kind }) => kind !== "delivered-late" && !isLate)
      if (end !== undefined && begunAt > end.storedAt + underWayMs)
        this.fail("sent after its end", `${what}, ${Math.round(begunAt - end.storedAt)} ms after`)
      const same = failures.find((fact) => (fact.attempt ?? 0) >= attempt && !fact.isLate)
      if (same !== undefined && begunAt > same.storedAt + underWayMs)
        this.fail("sent again after its failure", `${what}, recorded by ${factName(same)}`)
      const before = failures.findLast(
        (fact) => (fact.attempt ?? 0) < attempt && fact.storedAt < begunAt
      )
      const next = before?.nextAttemptAt
      if (next === undefined || !isClockRight) continue
      const due = next - this.#sim.world.wall + this.#sim.world.now
      if (begunAt < due - underWayMs && !this.#mayGoOn(endpoint, before?.storedAt ?? 0, begunAt))
        this.fail("sent too early", `${what}, ${Math.round(due - begunAt)} ms before its time`)
    }
  }

  /**
   * The audit counts as we do, and names the rounds that ended in two ways, excused or not, and
   * nothing else.
   */
  #judgeAudit(judgement: Judgement | string, isLost: boolean): void {
    // Of what the history has dropped it knows nothing: it is silent then, or misses plans.
    if (this.#hasWrapped) return
    const fail = (what: string) => this.fail("audit disagrees", what)
    if (typeof judgement === "string") {
      fail(judgement)
      return
    }
    const { problems, tally, verdict } = judgement
    // Where something is missing it is enough that the audit says so.
    if (isLost) {
      if (verdict === "clean") fail("it is clean, and something is missing")
      return
    }
    const expected: Array<string> = []
    const ours = { begun: 0, delivered: 0, repeated: 0, late: 0, deadLettered: 0, discarded: 0 }
    for (const { begun, ends, key } of this.#rounds.values()) {
      if (!begun) continue
      ours.begun++
      const count = (...kinds: ReadonlyArray<string>) =>
        ends.filter(({ kind }) => kinds.includes(kind)).length
      const late = count("delivered-late")
      // A success that a former owner records late takes the place of any other end.
      const [first] = late > 0 ? ["delivered"] : ends.map(({ kind }) => kind)
      if (late > 0) ours.late++
      if (first === "delivered") ours.delivered++
      else if (count("discarded") > 0) ours.discarded++
      else if (first === "dead-lettered") ours.deadLettered++
      if (late > 0 ? count("delivered", "delivered-late") > 1 : count(first ?? "") > 1)
        ours.repeated++
      if (isTwofold(ends)) expected.push(key)
    }
    for (const [what, number] of Object.entries(ours))
      if (tally[what as keyof typeof ours] !== number)
        fail(`${tally[what as keyof typeof ours]} ${what} instead of ${number}`)
    // What a former owner stores late may change what becomes of a delivery whose letter is stored.
    const mayBeAlone = this.#sim.server.injected.has("stall")
    const named = problems.list
      .filter(({ kind }) => kind !== "dead-letter-without-fact" || !mayBeAlone)
      .map(({ endpoint, eventSeq, kind, round }) => {
        const event = [...this.#events.values()].find(({ seq }) => seq === eventSeq)
        return kind === "contradiction" ? `${event?.key}.${endpoint}.${round}` : kind
      })
    if (named.sort().join() !== expected.sort().join())
      fail(`it names ${named.join(" ") || "nothing"} instead of ${expected.join(" ") || "nothing"}`)
  }
}

/** A delivery in a message of a queue or a backlog. */
interface Held {
  /** Its event and endpoint. */
  readonly delivery: string
  readonly round: string
  /** The place that it was moved from. */
  readonly origin: string | undefined
}

/** True where a round was delivered on time and dead-lettered, and nothing explains it. */
const isTwofold = (ends: ReadonlyArray<StoredFact>): boolean => {
  const kinds = new Set<string>(ends.map(({ kind }) => kind))
  return kinds.has("delivered") && kinds.has("dead-lettered") && !kinds.has("delivered-late")
}

const eventKey = (seq: number, at: number): string => `${seq}@${at}`

/** The event and endpoint of a stored delivery. */
const deliveryIn = ({ headers, subject }: Stored): string => {
  const event = eventKey(
    Number(headers.get("petrel-event-seq")),
    Number(headers.get("petrel-event-at"))
  )
  const of = headers.get("Nats-Schedule-Target") ?? subject
  return `${event}.${of.slice(of.lastIndexOf(".") + 1)}`
}

const factName = ({
  attempt,
  endpoint,
  eventSeq,
  kind,
  reason,
  round,
  worker
}: StoredFact): string =>
  [kind, `${eventSeq}.${endpoint}.${round ?? ""}`, attempt, reason, worker]
    .filter((each) => each !== undefined)
    .join(" ")
