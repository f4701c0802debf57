/*
 * A process's connection to the model server: the wire that Petrel's own publisher and puller write
 * to, and the broker's other operations. Frames of one direction keep their order; a break loses
 * those on their way. Reads of whole ranges come in one piece, so the NATS client's own ordered
 * consumers, its time-outs and its reconnecting are not simulated.
 */
import type { ConsumerInfo, JsMsg, StoredMsg, StreamInfo } from "@nats-io/jetstream"
import { JetStreamApiError } from "@nats-io/jetstream"
import type { KvEntry, KvWatchEntry } from "@nats-io/kv"
import type { Msg, Publisher as MsgPublisher } from "@nats-io/transport-node"
import { MsgImpl, TimeoutError } from "@nats-io/transport-node"
import { Deferred, Effect, Queue, Semaphore, Stream } from "effect"
import type { Range, Watch } from "../../src/broker/broker.ts"
import { Broker } from "../../src/broker/broker.ts"
import { askForState, BrokerError, streamNotFound } from "../../src/broker/broker-error.ts"
import type { Clients } from "../../src/broker/clients.ts"
import { registerClients } from "../../src/broker/clients.ts"
import { Publisher } from "../../src/broker/publisher.ts"
import { pullWith } from "../../src/broker/pull.ts"
import { TakeTurns } from "../../src/broker/take-turns.ts"
import { Unanswered } from "../../src/broker/unanswered.ts"
import type { Life, Wire } from "../../src/broker/wire.ts"
import type { Names } from "../../src/domain/names.ts"
import type { Chance } from "./chance.ts"
import { chanceOf } from "./chance.ts"
import type { ModelServer, Peer } from "./server.ts"
import { NoAnswer } from "./server.ts"
import type { ConsumerSettings } from "./server-consumer.ts"
import type { HeaderMap, ModelConfig, Stored } from "./server-stream.ts"
import { ApiError, matches, millisOf } from "./server-stream.ts"
import type { SimProcess } from "./world.ts"

/**
 * The installation has no intake. It is answered at once: a request more would change the meaning of
 * every seed.
 */
const withoutIntake = new JetStreamApiError({
  code: 404,
  err_code: streamNotFound,
  description: "stream not found"
})

/** Time-out of a request, ms. */
const requestMs = 10_000
const empty = Buffer.alloc(0)
const maxPayload = 1024 * 1024

const encodeHeaders = (headers: HeaderMap | string): Buffer => {
  if (typeof headers === "string") return headers === "" ? empty : Buffer.from(headers)
  if (headers.size === 0) return empty
  let text = "NATS/1.0\r\n"
  for (const [name, value] of headers) text += `${name}: ${value}\r\n`
  return Buffer.from(`${text}\r\n`)
}

const isoNanos = (time: bigint): string => {
  const nanos = String(time % 1_000_000n).padStart(6, "0")
  return new Date(millisOf(time)).toISOString().replace("Z", `${nanos}Z`)
}

/** The headers of a read message, as far as Petrel asks for them. */
class ReadHeaders {
  readonly #map: HeaderMap
  constructor(map: HeaderMap) {
    this.#map = map
  }
  get(name: string): string {
    return this.#map.get(name) ?? ""
  }
  has(name: string): boolean {
    return this.#map.has(name)
  }
  keys(): Array<string> {
    return [...this.#map.keys()]
  }
  *[Symbol.iterator](): Generator<[string, Array<string>]> {
    for (const [name, value] of this.#map) yield [name, [value]]
  }
}

const storedMsg = (message: Stored, extra: HeaderMap = new Map()): StoredMsg => {
  const { data, seq, subject, time } = message
  return {
    subject,
    seq,
    header: new ReadHeaders(new Map([...message.headers, ...extra])),
    data,
    time: new Date(millisOf(time)),
    timestamp: isoNanos(time),
    string: () => data.toString(),
    json: () => JSON.parse(data.toString())
  } as unknown as StoredMsg
}

const jsMsg = (message: Stored, pending: number, isHeadersOnly: boolean): JsMsg => {
  const { headers, seq, subject, time } = message
  const data = isHeadersOnly ? empty : message.data
  return {
    subject,
    seq,
    headers: headers.size === 0 ? undefined : new ReadHeaders(headers),
    data,
    info: { pending, streamSequence: seq, timestampNanos: Number(time) },
    timestampNanos: time,
    time: new Date(millisOf(time)),
    string: () => data.toString(),
    json: () => JSON.parse(data.toString())
  } as unknown as JsMsg
}

const entryOf = (bucket: string, message: Stored): KvEntry & KvWatchEntry => {
  const { data, headers, seq, subject, time } = message
  const expired = headers.has("Nats-Marker-Reason") ? "PURGE" : "PUT"
  return {
    bucket,
    key: subject.slice(`$KV.${bucket}.`.length),
    value: data,
    created: new Date(millisOf(time)),
    revision: seq,
    operation: headers.get("KV-Operation") ?? expired,
    length: data.length,
    isUpdate: true,
    string: () => data.toString(),
    json: () => JSON.parse(data.toString())
  } as unknown as KvEntry & KvWatchEntry
}

/** Returns a message as the client parses it. */
const messageOf = (
  subject: string,
  reply: string,
  headers: HeaderMap | string,
  body: Buffer,
  to: object
): Msg => {
  const head = encodeHeaders(headers)
  const raw = head.length === 0 ? body : Buffer.concat([head, body])
  const args = {
    subject: Buffer.from(subject),
    reply: Buffer.from(reply),
    sid: 1,
    hdr: head.length === 0 ? -1 : head.length,
    size: raw.length
  }
  return new MsgImpl(args, raw, to as MsgPublisher) as Msg
}

/** One message for each request of a client, in the order that they were written. */
const messagesIn = (
  piece: Buffer,
  see: (subject: string, reply: string, headers: string, data: Buffer) => void
) => {
  for (let at = 0; at < piece.length; ) {
    const end = piece.indexOf("\r\n", at, "latin1")
    const tokens = piece.toString("latin1", at, end).split(" ")
    const sizes = tokens[0] === "HPUB" ? 2 : 1
    const total = Number(tokens.at(-1))
    const head = sizes === 2 ? Number(tokens.at(-2)) : 0
    const reply = tokens.length === 2 + sizes ? "" : (tokens[2] ?? "")
    const from = end + 2
    const headers = head === 0 ? "" : piece.toString("utf8", from, from + head)
    see(tokens[1] ?? "", reply, headers, Buffer.from(piece.subarray(from + head, from + total)))
    at = from + total + 2
  }
}

interface ServerInfo {
  readonly max_payload: number
  readonly version: string
}

export class SimConnection implements Wire, Peer {
  readonly process: SimProcess
  readonly broker: Broker["Service"]
  /** How far watches lag behind their bucket, ms: a replica that is behind serves them. */
  watchLagMs = 0
  /** Until when what it sends is held up on its way, ms of the world's time. */
  stalledUntil = 0
  /** The end of the last such time. */
  wasStalledUntil = Number.NEGATIVE_INFINITY
  isClosed = false
  isConnected: boolean
  /** When it was established, ms of the world's time. */
  connectedAt: number
  readonly #server: ModelServer
  readonly #chance: Chance
  readonly #publisher: Publisher
  readonly #subscriptions = new Map<string, (message: Msg) => void>()
  readonly #listeners = new Set<() => void>()
  readonly #closed = Deferred.makeUnsafe<void>()
  #info: ServerInfo = { max_payload: maxPayload, version: "2.15.1" }
  #inboxes = 0
  /** Number of breaks: what was under way before one is lost. */
  #breaks = 0
  /**
   * Fail the requests that wait for an answer: with the connection on which they were sent, and those
   * that were never sent once there is one.
   */
  readonly #asked = new Set<() => void>()
  /** When the last frame of each direction arrives. */
  #outAt = 0
  #inAt = 0

  constructor(server: ModelServer, process: SimProcess, names: Names) {
    this.#server = server
    this.process = process
    this.connectedAt = server.world.now
    this.isConnected = !server.isDown
    this.#chance = chanceOf(server.world.seed, "connection", process.name)
    this.#publisher = server.world.as(
      process,
      () => new Publisher(this, new Unanswered(names.streamOf), names, 5_000)
    )
    this.#publisher.outbound.isStored = (stream, seq, at) =>
      Effect.runPromise(
        Effect.map(
          this.broker.readMessage("look", stream, { seq }),
          (message) => message?.time.getTime() === at
        ),
        { scheduler: process.scheduler }
      )
    this.#listeners.add(() => this.#publisher.reconnected())
    this.broker = Broker.of(this.#operations(names))
    registerClients(this.broker, { jsm: this.#manager() } as unknown as Clients)
    if (!this.isConnected) server.world.after(0, () => this.#reconnect(), process)
  }

  get life(): Life | undefined {
    return this.#info
  }

  get largest(): number {
    return maxPayload
  }

  write(piece: Uint8Array): void {
    this.#toServer(() =>
      messagesIn(Buffer.from(piece), (...message) => this.#server.take(this, ...message))
    )
  }

  subscribe(subject: string, receive: (message: Msg) => void): () => void {
    this.#subscriptions.set(subject, receive)
    if (this.isConnected) this.#server.subscribe(this, subject)
    return () => {
      this.#subscriptions.delete(subject)
      this.#server.unsubscribe(this, subject)
    }
  }

  inbox(): string {
    return `_INBOX.${this.process.name}${this.#inboxes++}`
  }

  /** Called by the server. */
  receive(
    inbox: string,
    subject: string,
    reply: string,
    headers: HeaderMap | string,
    data: Buffer
  ): void {
    this.#toClient(() => {
      const receive = this.#subscriptions.get(inbox)
      receive?.(messageOf(subject, reply, headers, data, this))
    })
  }

  /** Breaks the connection, and makes another after a time, ms. */
  breakFor(ms: number): void {
    if (this.isClosed) return
    this.isConnected = false
    this.#breaks++
    this.#server.leave(this)
    this.#failRequests()
    this.#server.world.after(ms, () => this.#reconnect(), this.process)
  }

  /** The process has ended. */
  end(): void {
    this.isConnected = false
    this.isClosed = true
    this.#server.leave(this)
    Deferred.doneUnsafe(this.#closed, Effect.void)
  }

  #reconnect(): void {
    if (this.isClosed || this.isConnected) return
    if (this.#server.isDown) {
      this.#server.world.after(
        this.#chance.between(250, 500),
        () => this.#reconnect(),
        this.process
      )
      return
    }
    this.#outAt = this.#inAt = this.stalledUntil = 0
    this.#info = { ...this.#info }
    this.isConnected = true
    this.connectedAt = this.#server.world.now
    for (const subject of this.#subscriptions.keys()) this.#server.subscribe(this, subject)
    this.#failRequests()
    for (const listener of [...this.#listeners]) listener()
  }

  #failRequests(): void {
    for (const lose of this.#asked) this.#server.world.after(0, lose, this.process)
    this.#asked.clear()
  }

  #latency(): number {
    return this.#chance.isHit(0.01) ? this.#chance.between(1, 40) : this.#chance.between(0.05, 0.4)
  }

  #toServer(run: () => void): void {
    const { process, world } = this.#server
    const breaks = this.#breaks
    this.#outAt = Math.max(this.#outAt, this.stalledUntil, world.now + this.#latency())
    const arrive = () => {
      if (breaks === this.#breaks && this.isConnected && !this.#server.isDown) run()
    }
    world.after(this.#outAt - world.now, arrive, process)
  }

  #toClient(run: () => void, at = 0): void {
    const { world } = this.#server
    const breaks = this.#breaks
    this.#inAt = Math.max(this.#inAt, world.now + this.#latency())
    const arrive = () => {
      if (breaks === this.#breaks && this.isConnected) run()
    }
    world.after(Math.max(at, this.#inAt) - world.now, arrive, this.process)
  }

  /** A request and its answer, which take their time and may be lost. */
  #ask<A>(operation: string, answer: () => A): Effect.Effect<A, BrokerError> {
    return Effect.callback((resume) => {
      const { timers } = this.process
      const settle = (result: Effect.Effect<A, BrokerError>) => {
        timers.cancel(timer)
        this.#asked.delete(lose)
        resume(result)
      }
      const fail = (cause: Error) => Effect.fail(new BrokerError({ operation, cause }))
      const lose = () => settle(fail(new TimeoutError()))
      const timer = timers.after(requestMs, lose)
      this.#asked.add(lose)
      if (!this.isConnected) return
      this.#toServer(() => {
        let result: Effect.Effect<A, BrokerError>
        try {
          result = Effect.succeed(answer())
        } catch (error) {
          if (error instanceof NoAnswer) return
          if (!(error instanceof ApiError)) throw error
          const { code, message, status } = error
          const description = { code: status, err_code: code, description: message }
          result = fail(new JetStreamApiError(description))
        }
        if (this.#chance.isHit(this.#server.lostAnswers)) this.#server.count("an answer lost")
        else this.#toClient(() => settle(result))
      })
    })
  }

  /** @param lagMs how far what is read is behind. */
  #select(
    { lastOfSubjects, stream: name, subjects }: Range,
    fromSeq: number,
    lagMs = this.#server.replicaLagMs * this.#chance.next()
  ): Array<Stored> {
    const stream = this.#server.stream(name)
    const shownUntil = this.#server.world.wall - lagMs
    const isWanted = ({ subject, time }: Stored) =>
      (lagMs === 0 || millisOf(time) <= shownUntil) &&
      subjects.some((each) => matches(each, subject))
    const list = [...stream.from(lastOfSubjects === true ? 1 : fromSeq)].filter(isWanted)
    return lastOfSubjects === true
      ? list.filter((message) => stream.lastOf(message.subject) === message)
      : list
  }

  /** Follows a stream on this connection: what is there first, then what comes. */
  #follow(range: Range, fromSeq: number, hear: (message: Stored, pending: number) => void) {
    let isStopped = false
    /** Where the client goes on after a break, whatever the stream has lost meanwhile. */
    let next = 0
    let leave = () => {}
    /** What is late stays in order. */
    let shownAt = 0
    const show = (message: Stored, pending: number) => {
      if (range.stream.startsWith("KV_"))
        shownAt = Math.max(shownAt, this.#server.world.now + this.watchLagMs)
      this.#toClient(() => {
        if (isStopped) return
        next = message.seq + 1
        hear(message, pending)
      }, shownAt)
    }
    const begin = () => {
      const breaks = this.#breaks
      this.#toServer(() => {
        if (isStopped) return
        const list =
          next === 0
            ? this.#select(range, fromSeq, 0)
            : this.#select({ ...range, lastOfSubjects: false }, next, 0)
        for (const [index, message] of list.entries()) show(message, list.length - 1 - index)
        const { followers } = this.#server.stream(range.stream)
        const follower = (message: Stored) => {
          if (!this.process.isAlive || breaks !== this.#breaks) followers.delete(follower)
          else if (range.subjects.some((each) => matches(each, message.subject))) show(message, 0)
        }
        followers.add(follower)
        leave = () => followers.delete(follower)
      })
    }
    // The client makes another ordered consumer on the next connection, from where it was.
    const again = () => {
      leave()
      begin()
    }
    begin()
    this.#listeners.add(again)
    return () => {
      isStopped = true
      this.#listeners.delete(again)
      leave()
    }
  }

  #watch(bucket: string): Watch {
    const waiting: Array<KvWatchEntry> = []
    let wake = () => {}
    let isOver = false
    const range = { stream: `KV_${bucket}`, subjects: [`$KV.${bucket}.>`], lastOfSubjects: true }
    const stop = this.#follow(range, 1, (message) => {
      waiting.push(entryOf(bucket, message))
      wake()
    })
    const entries = async function* () {
      while (!isOver) {
        const next = waiting.shift()
        if (next !== undefined) yield next
        else
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
    }
    return {
      [Symbol.asyncIterator]: entries,
      stop: () => {
        isOver = true
        stop()
        wake()
      }
    }
  }

  /** What a change of the number of partitions uses of the client's management. */
  #manager() {
    const server = this.#server
    const { scheduler } = this.process
    const promise = <A>(operation: string, answer: () => A): Promise<A> =>
      Effect.runPromise(
        Effect.mapError(this.#ask(operation, answer), ({ cause }) => cause),
        { scheduler }
      )
    return {
      streams: {
        info: (name: string) => promise("look at a stream", () => server.led(name).info()),
        add: (config: ModelConfig) =>
          promise("make a stream", () => server.addStream(config).info()),
        update: (name: string, config: Partial<ModelConfig>) =>
          promise("change a stream", () => server.updateStream(name, config)),
        delete: (name: string) => promise("remove a stream", () => server.removeStream(name))
      },
      consumers: {
        add: (stream: string, config: ConsumerSettings) =>
          promise("make a consumer", () => void server.addConsumer(stream, config))
      }
    }
  }

  #operations(names: Names): Broker["Service"] {
    const server = this.#server
    const publisher = this.#publisher
    const { outbound } = publisher
    const ask = <A>(operation: string, answer: () => A) => this.#ask(operation, answer)
    const askFor = <A>(operation: string, answer: () => A) => askForState(ask(operation, answer))
    const onReconnect = (listener: () => void) => {
      this.#listeners.add(listener)
      return () => void this.#listeners.delete(listener)
    }
    const select = (range: Range, fromSeq: number) =>
      ask(`read ${range.stream}`, () => {
        const list = this.#select(range, fromSeq)
        return list.map((message, index) =>
          jsMsg(message, list.length - 1 - index, range.headersOnly === true)
        )
      })
    const { monotonicMs } = this.process.timers
    const turns = { deliveries: new TakeTurns(), events: new TakeTurns() }
    return {
      names,
      oneOfFew: Semaphore.makeUnsafe(4),
      publish: (subject, body, headers, life) => publisher.publish(subject, body, headers, life),
      send: (subject, body, headers, settle) => publisher.send(subject, body, headers, settle),
      life: () => this.#info,
      unanswered: () => publisher.unanswered.streams(monotonicMs()),
      largestMessage: () => outbound.largest,
      pull: (options) =>
        pullWith(
          this,
          outbound,
          turns,
          onReconnect,
          new Set(),
          () => Effect.succeed(false),
          options
        ),
      failedPulls: () => [],
      readMessage: (operation, stream, query) =>
        askFor(operation, () => {
          const of = server.led(stream)
          const found =
            "last_by_subj" in query
              ? of.lastOf(query.last_by_subj)
              : "next_by_subj" in query
                ? of.nextOf(query.next_by_subj, query.seq)
                : of.get(query.seq)
          return found === undefined ? null : storedMsg(found)
        }),
      batch: (stream, subject, from, limits) =>
        ask(`read ${subject}`, () => {
          const all =
            typeof from === "number"
              ? this.#select({ stream, subjects: [subject] }, from)
              : this.#select({ stream, subjects: [subject] }, 1).filter(
                  ({ time }) => millisOf(time) >= from.time
                )
          const list: Array<StoredMsg> = []
          let bytes = 0
          for (const message of all) {
            bytes += message.data.length + 64
            if (list.length > 0 && (list.length >= limits.batch || bytes > limits.max_bytes)) break
            const left = String(all.length - list.length - 1)
            list.push(storedMsg(message, new Map([["Nats-Num-Pending", left]])))
          }
          return list
        }),
      read: (range, fromSeq) =>
        range.follow === true
          ? Stream.callback<JsMsg, BrokerError>((queue) =>
              Effect.acquireRelease(
                Effect.sync(() =>
                  this.#follow(range, fromSeq, (message, pending) => {
                    Queue.offerUnsafe(queue, jsMsg(message, pending, range.headersOnly === true))
                  })
                ),
                (stop) => Effect.sync(stop)
              )
            )
          : Stream.unwrap(Effect.map(select(range, fromSeq), Stream.fromIterable)),
      see: (range, fromSeq, see) =>
        Effect.map(select(range, fromSeq), (list) => {
          let seq = fromSeq - 1
          for (const message of list) {
            seq = message.seq
            if (see(message)) return { seq, enough: true }
          }
          return { seq, enough: false }
        }),
      readRun: ({ from, headersOnly, stream, subjects, to }, see) =>
        Effect.map(
          ask(`read ${stream}`, () =>
            this.#select({ stream, subjects }, from).filter(({ seq }) => seq <= to)
          ),
          (list) => {
            for (const { data, headers, seq, subject, time } of list) {
              const body = headersOnly === true ? empty : data
              const message = messageOf(subject, "", headers, body, this)
              see({ message, seq, nanoseconds: String(time) })
            }
            return (list.at(-1)?.seq ?? from - 1) + 1
          }
        ),
      firstSince: (stream, time) =>
        time <= 0
          ? Effect.succeed(1)
          : ask(`look for a time in ${stream}`, () => {
              const of = server.led(stream)
              for (const message of of.from(1))
                if (millisOf(message.time) >= time) return message.seq
              return of.lastSeq + 1
            }),
      countSince: (stream, since, subject = ">") =>
        ask(`count what is new in ${stream}`, () => {
          const list = this.#select({ stream, subjects: [subject] }, 1)
          return list.filter(({ time }) => millisOf(time) >= since).length
        }),
      entry: (bucket, key) =>
        askFor(`read ${key}`, () => {
          const found = server.led(`KV_${bucket}`).lastOf(`$KV.${bucket}.${key}`)
          return found === undefined ? null : entryOf(bucket, found)
        }),
      watch: (bucket) =>
        Effect.acquireRelease(
          Effect.sync(() => this.#watch(bucket)),
          (entries) => Effect.sync(() => entries.stop())
        ),
      streamInfo: (operation, stream, options) =>
        stream === names.intake
          ? Effect.fail(new BrokerError({ operation, cause: withoutIntake }))
          : askFor(
              operation,
              () => server.led(stream).info(options?.subjects_filter) as unknown as StreamInfo
            ),
      streamNames: (operation, subject) =>
        ask(operation, () =>
          [...server.streams.values()]
            .filter((stream) => subject === undefined || stream.takes(subject))
            .map(({ name }) => name)
        ),
      listStreams: (operation) =>
        ask(operation, () =>
          [...server.streams.values()]
            .filter(({ hasLeader }) => hasLeader)
            .map((stream) => stream.info() as unknown as StreamInfo)
        ),
      consumerInfo: (operation, stream, name) =>
        askFor(operation, () => {
          const consumer = server.consumer(stream, name)
          const { ackFloor, config, cursor, delivered, numPending, pending, waiting } = consumer
          return {
            name,
            stream_name: stream,
            config,
            num_pending: numPending,
            num_ack_pending: pending.size,
            delivered: { stream_seq: cursor - 1, consumer_seq: delivered },
            ack_floor: { stream_seq: ackFloor, consumer_seq: 0 },
            num_redelivered: 0,
            num_waiting: waiting
          } as unknown as ConsumerInfo
        }),
      makeConsumer: (operation, stream, config) =>
        ask(operation, () => server.addConsumer(stream, config as object)),
      deleteMessage: (operation, stream, seq) =>
        ask(operation, () => {
          server.world.trace(`deletes ${stream} ${seq}`)
          return server.led(stream).remove(seq)
        }),
      purge: (operation, stream, { filter = ">", seq }) =>
        ask(operation, () => {
          server.world.trace(`purges ${stream} ${filter} below ${seq}`)
          server.led(stream).purge(filter, seq)
        }),
      say: (subject, body, reply = "") => {
        if (this.isClosed || !this.isConnected) return
        const data = Buffer.from(body as string)
        this.#toServer(() => server.take(this, subject, reply, "", data))
      },
      listen: (subject, receive) => this.subscribe(subject, receive),
      inbox: () => this.inbox(),
      flush: ask("flush", () => undefined),
      server: () => this.#info,
      userInfo: ask("ask as whom the broker knows us", () => "{}"),
      onReconnect,
      closed: Deferred.await(this.#closed),
      isClosed: () => this.isClosed
    }
  }
}
