/*
 * A model of nats-server with JetStream: what Petrel uses of it, and how it fails. The heads of
 * server-stream.ts and server-consumer.ts say what is modelled and what is not. Of core NATS: plain
 * subjects, one wildcard as the last token, no queue groups, no limits. Conformance with the real
 * server is checked by conformance.ts.
 */
import type { Chance } from "./chance.ts"
import { chanceOf } from "./chance.ts"
import type { ConsumerSettings, Deliver, Pending } from "./server-consumer.ts"
import { Consumer } from "./server-consumer.ts"
import type { HeaderMap, ModelConfig, Stored } from "./server-stream.ts"
import { ApiError, ModelStream } from "./server-stream.ts"
import { SimProcess, type World } from "./world.ts"

/** A connection as the server sees it. */
export interface Peer {
  readonly process: SimProcess
  receive(
    inbox: string,
    subject: string,
    reply: string,
    headers: HeaderMap | string,
    data: Buffer
  ): void
}

/** What happens in the server, for who watches it. */
export interface ServerEvents {
  stored(stream: ModelStream, message: Stored): void
  /** A stream has dropped a message, being full, or the message too old. */
  dropped(stream: ModelStream, message: Stored): void
  /** The ack wait of a message is over, without any answer. */
  expired(stream: ModelStream, seq: number, pending: Pending): void
  /** An answer to a message has come, or was lost on its way. */
  answered(
    at: { readonly stream: string; readonly consumer: string },
    seq: number,
    payload: string,
    isLost: boolean,
    by: SimProcess
  ): void
  /** A message that is not stored was sent to who listens to a subject. */
  told(subject: string): void
}

const none: HeaderMap = new Map()
const empty = Buffer.alloc(0)
const noResponders = "NATS/1.0 503\r\n\r\n"

/** A request gets no answer. */
export class NoAnswer extends Error {}

export const parseHeaders = (text: string): HeaderMap => {
  if (text === "") return none
  const map = new Map<string, string>()
  for (const line of text.split("\r\n").slice(1)) {
    const colon = line.indexOf(":")
    const name = line.slice(0, colon)
    if (colon > 0 && !map.has(name)) map.set(name, line.slice(colon + 1).trim())
  }
  return map
}

export class ModelServer {
  readonly world: World
  readonly process: SimProcess
  readonly chance: Chance
  readonly streams = new Map<string, ModelStream>()
  /** Share of answers to requests that are lost. */
  lostAnswers = 0
  /** Share of acknowledgements of messages that are lost. */
  lostAcks = 0
  isDown = false
  /** How far copies of streams are behind their leader at most, ms. */
  replicaLagMs = 0
  events: ServerEvents | undefined
  /** Whose publish is being stored; undefined for what the server stores by itself. */
  publisher: SimProcess | undefined
  readonly injected = new Map<string, number>()
  readonly #listeners = new Map<string, Set<Peer>>()
  readonly #routes = new Map<string, ModelStream | undefined>()
  #consumers = 0

  constructor(world: World) {
    this.world = world
    this.process = new SimProcess(world, "broker")
    this.chance = chanceOf(world.seed, "server")
  }

  addStream(config: ModelConfig): ModelStream {
    const stream = new ModelStream(this, config)
    this.streams.set(stream.name, stream)
    this.#routes.clear()
    return stream
  }

  /** Adds a consumer; one without a name gets one. */
  addConsumer(stream: string, config: ConsumerSettings): Consumer {
    const of = this.stream(stream)
    const name = config.durable_name ?? `c${this.#consumers++}`
    const known = of.consumers.get(name)
    if (known !== undefined) return known
    const consumer = new Consumer(of, name, config)
    of.consumers.set(name, consumer)
    return consumer
  }

  updateStream(name: string, config: Partial<ModelConfig>): void {
    const stream = this.stream(name)
    stream.config = { ...stream.config, ...config }
    this.#routes.clear()
  }

  removeStream(name: string): void {
    const stream = this.stream(name)
    stream.purge(">", Number.POSITIVE_INFINITY)
    this.streams.delete(name)
    this.#routes.clear()
    this.world.trace(`removes stream ${name}`)
  }

  stream(name: string): ModelStream {
    const stream = this.streams.get(name)
    if (stream === undefined) throw new ApiError(10059, 404, "stream not found")
    return stream
  }

  /** Returns a stream for a request that only its leader answers. Throws where nobody does. */
  led(name: string): ModelStream {
    const stream = this.stream(name)
    if (!stream.hasLeader) throw new NoAnswer()
    return stream
  }

  consumer(stream: string, name: string): Consumer {
    const consumer = this.led(stream).consumers.get(name)
    if (consumer === undefined) throw new ApiError(10014, 404, "consumer not found")
    return consumer
  }

  subscribe(peer: Peer, subject: string): void {
    const peers = this.#listeners.get(subject)
    if (peers === undefined) this.#listeners.set(subject, new Set([peer]))
    else peers.add(peer)
  }

  unsubscribe(peer: Peer, subject: string): void {
    const peers = this.#listeners.get(subject)
    peers?.delete(peer)
    if (peers?.size === 0) this.#listeners.delete(subject)
  }

  /** The connection of a client is gone. */
  leave(peer: Peer): void {
    for (const subject of [...this.#listeners.keys()]) this.unsubscribe(peer, subject)
    for (const { consumers } of this.streams.values())
      for (const consumer of consumers.values()) consumer.leave(peer)
  }

  /** Notes that a fault has struck. */
  count(fault: string): void {
    this.injected.set(fault, (this.injected.get(fault) ?? 0) + 1)
  }

  /**
   * The process is killed: what was in its memory only is gone.
   *
   * @param forgets most that a work queue, and a consumer, forget of what they did last.
   */
  killed(forgets = 0): void {
    this.isDown = true
    this.#listeners.clear()
    for (const stream of this.streams.values()) {
      stream.restarted()
      if (forgets > 0) this.#forget(stream, forgets)
    }
  }

  #forget(stream: ModelStream, most: number): void {
    const draw = () => (this.chance.isHit(0.5) ? 1 + this.chance.int(most) : 0)
    const isQueue = stream.config.retention === "workqueue"
    const back = isQueue ? stream.forget(draw()) : []
    if (back.length > 0) this.count("a removed message came back")
    // It forgot the acknowledgement of some of them, too.
    const seqs = back.flatMap(({ seq }) => (this.chance.isHit(0.5) ? [seq] : []))
    for (const consumer of stream.consumers.values()) {
      consumer.unacknowledged(seqs)
      const count = draw()
      if (count > 0) this.count("a consumer forgot deliveries")
      consumer.rewind(count)
    }
    this.world.trace(`${stream.name} has again ${back.map(({ seq }) => seq)}, redelivers ${seqs}`)
  }

  back(): void {
    this.isDown = false
  }

  stored(stream: ModelStream, message: Stored): void {
    this.events?.stored(stream, message)
    for (const other of this.streams.values())
      for (const { filter_subject = ">", name } of other.config.sources ?? [])
        if (name === stream.name) this.#copy(other, filter_subject, stream, message)
  }

  expired(stream: ModelStream, seq: number, pending: Pending): void {
    this.events?.expired(stream, seq, pending)
  }

  /** One message of a client. */
  take(peer: Peer, subject: string, reply: string, headers: string, data: Buffer): void {
    if (subject.startsWith("$JS.ACK.")) this.#takeAnswer(peer, subject, data)
    else if (subject.startsWith("$JS.API.CONSUMER.MSG.NEXT."))
      this.#takePull(peer, subject, reply, data)
    else {
      const stream = this.#streamFor(subject)
      if (stream !== undefined) {
        this.publisher = peer.process
        this.#takePublish(stream, subject, reply, headers, data)
        this.publisher = undefined
      } else if (!this.#deliver(subject, subject, reply, headers, data) && reply !== "")
        this.#deliver(reply, reply, "", noResponders, empty)
    }
  }

  #copy(
    to: ModelStream,
    filter: string,
    from: ModelStream,
    { data, headers, seq, subject }: Stored
  ) {
    if (from.nextOf(filter, seq)?.seq !== seq) return
    const source = `${from.name} ${seq} > > ${subject}`
    const copied = new Map([...headers, ["Nats-Stream-Source", source]])
    const soonMs = this.chance.between(0.1, 3)
    this.world.after(soonMs, () => to.append(subject, copied, data), this.process)
  }

  #takeAnswer({ process }: Peer, subject: string, data: Buffer): void {
    const tokens = subject.split(".")
    const [stream = "", consumer = ""] = [tokens[4], tokens[5]]
    const seq = Number(tokens[7])
    const payload = data.toString("latin1")
    const hasLeader = this.streams.get(stream)?.hasLeader === true
    const isLost = this.chance.isHit(this.lostAcks) || !hasLeader
    if (isLost) this.count("an acknowledgement lost")
    this.events?.answered({ stream, consumer }, seq, payload, isLost, process)
    if (!isLost) this.streams.get(stream)?.consumers.get(consumer)?.answer(seq, payload)
  }

  #takePull(peer: Peer, subject: string, reply: string, data: Buffer): void {
    const [stream = "", name = ""] = subject.slice("$JS.API.CONSUMER.MSG.NEXT.".length).split(".")
    const { batch = 1, expires = 30e9, max_bytes } = JSON.parse(data.toString())
    const of = this.streams.get(stream)
    const consumer = of?.consumers.get(name)
    if (consumer === undefined || of?.hasLeader !== true) {
      this.#deliver(reply, reply, "", noResponders, empty)
      return
    }
    const deliver: Deliver = (inbox, ...message) => this.#deliver(inbox, ...message)
    const bytes = max_bytes ?? Number.POSITIVE_INFINITY
    consumer.pull({ owner: peer, deliver, inbox: reply, left: batch, bytes }, expires / 1e6)
  }

  #takePublish(
    stream: ModelStream,
    subject: string,
    reply: string,
    headers: string,
    data: Buffer
  ): void {
    if (stream.isStuck) return
    if (!stream.hasLeader) {
      if (reply !== "") this.#deliver(reply, reply, "", noResponders, empty)
      return
    }
    let answer: object
    try {
      const { duplicate, seq } = stream.publish(subject, parseHeaders(headers), data)
      this.world.trace(`stores ${stream.name} ${seq} ${subject}${duplicate ? " again" : ""}`)
      answer = { stream: stream.name, seq, ...(duplicate ? { duplicate } : {}) }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { code, message, status } = error
      this.world.trace(`refuses ${stream.name} ${subject}: ${message}`)
      answer = { error: { err_code: code, code: status, description: message } }
    }
    if (reply === "") return
    if (this.chance.isHit(this.lostAnswers)) this.count("an answer lost")
    else this.#deliver(reply, reply, "", "", Buffer.from(JSON.stringify(answer)))
  }

  /** Sends a message that is not stored to who listens. Returns whether anybody does. */
  #deliver(
    inbox: string,
    subject: string,
    reply: string,
    headers: HeaderMap | string,
    data: Buffer
  ): boolean {
    const pattern = `${inbox.slice(0, inbox.lastIndexOf("."))}.*`
    for (const key of [inbox, pattern]) {
      const peers = this.#listeners.get(key)
      if (peers === undefined) continue
      this.events?.told(key)
      for (const peer of [...peers]) peer.receive(key, subject, reply, headers, data)
      return true
    }
    return false
  }

  #streamFor(subject: string): ModelStream | undefined {
    if (this.#routes.has(subject)) return this.#routes.get(subject)
    let found: ModelStream | undefined
    for (const stream of this.streams.values()) if (stream.takes(subject)) found = stream
    if (this.#routes.size > 5000) this.#routes.clear()
    this.#routes.set(subject, found)
    return found
  }
}
