/*
 * A stream of the model of nats-server, as far as Petrel uses streams.
 *
 * It does: limits and work-queue retention, sequences, subjects, dedupe by Nats-Msg-Id within the
 * window, expected last sequence of a subject, rollup, one message per subject, TTL with delete
 * markers, max_age below a day, message schedules, sources with a filter, discard new and old by
 * bytes, purge, a lost end, removed messages that come back after a kill. Copies that are behind their leader are in
 * connection.ts.
 * It does not: a log of several copies, max_msgs, compression, republish, mirrors,
 * external sources and subject transforms, counters, atomic batches, message traces.
 */

import type { ModelServer } from "./server.ts"
import type { Consumer } from "./server-consumer.ts"

export type HeaderMap = ReadonlyMap<string, string>

/** A stored message. */
export interface Stored {
  readonly seq: number
  readonly subject: string
  readonly headers: HeaderMap
  readonly data: Buffer
  /** When it was stored, ns since the epoch. */
  readonly time: bigint
}

export interface ModelConfig {
  readonly name: string
  readonly subjects?: ReadonlyArray<string>
  readonly retention?: string
  readonly discard?: string
  readonly max_bytes?: number
  readonly max_msg_size?: number
  readonly max_msgs_per_subject?: number
  /** ns */
  readonly duplicate_window?: number
  /** ns */
  readonly max_age?: number
  /** The first sequence that is given. */
  readonly first_seq?: number
  readonly allow_msg_ttl?: boolean
  readonly allow_msg_schedules?: boolean
  readonly allow_rollup_hdrs?: boolean
  readonly subject_delete_marker_ttl?: number
  readonly sources?: ReadonlyArray<{ readonly name: string; readonly filter_subject?: string }>
}

/** A refusal of the JetStream API. */
export class ApiError extends Error {
  readonly code: number
  readonly status: number
  constructor(code: number, status: number, description: string) {
    super(description)
    this.code = code
    this.status = status
  }
}

export const millisOf = (time: bigint): number => Number(time / 1_000_000n)

export const matches = (filter: string, subject: string): boolean => {
  if (filter === subject || filter === ">" || filter === "") return true
  if (!filter.includes("*")) {
    if (!filter.endsWith(">")) return false
    return subject.length >= filter.length && subject.startsWith(filter.slice(0, -1))
  }
  const wanted = filter.split(".")
  const tokens = subject.split(".")
  for (let i = 0; i < wanted.length; i++) {
    if (wanted[i] === ">") return tokens.length > i
    if (i >= tokens.length || (wanted[i] !== "*" && wanted[i] !== tokens[i])) return false
  }
  return wanted.length === tokens.length
}

const isPattern = (filter: string): boolean => filter.includes("*") || filter.includes(">")

/** A killed server forgets nothing that is older, ms. */
export const forgottenMs = 2_000

/** No run lasts until messages reach this age, ms. */
const longAgeMs = 24 * 3_600_000

/** What the server adds to a message for its own files, bytes; roughly. */
const overheadBytes = 64
const sizeOf = ({ data, subject }: Pick<Stored, "data" | "subject">): number =>
  data.length + subject.length + overheadBytes

export class ModelStream {
  readonly name: string
  config: ModelConfig
  readonly consumers = new Map<string, Consumer>()
  /** Called with each message that is stored. */
  readonly followers = new Set<(message: Stored) => void>()
  readonly createdMs: number
  lastSeq = 0
  bytes = 0
  /** Answers nothing, as after a failed write to its disk, and stores nothing. */
  isStuck = false
  /** False during an election: nobody takes anything but reads of copies. */
  hasLeader = true
  readonly #server: ModelServer
  #lastTime = 0n
  readonly #messages = new Map<number, Stored>()
  readonly #bySubject = new Map<string, Array<number>>()
  /** What acknowledgements have removed last, the newest at the end. */
  readonly #acknowledged: Array<{ readonly message: Stored; readonly at: number }> = []
  readonly #ids = new Map<string, { readonly seq: number; readonly until: number }>()

  constructor(server: ModelServer, config: ModelConfig) {
    this.#server = server
    this.name = config.name
    this.config = config
    this.createdMs = server.world.wall
    this.lastSeq = Math.max(0, (config.first_seq ?? 0) - 1)
  }

  get server(): ModelServer {
    return this.#server
  }

  get size(): number {
    return this.#messages.size
  }

  get firstSeq(): number {
    for (const seq of this.#messages.keys()) return seq
    return this.lastSeq === 0 ? 0 : this.lastSeq + 1
  }

  get(seq: number): Stored | undefined {
    return this.#messages.get(seq)
  }

  *from(seq: number): Generator<Stored> {
    if (seq > this.lastSeq) return
    // There are gaps only where messages were removed.
    if (this.lastSeq - seq < this.#messages.size) {
      for (let at = seq; at <= this.lastSeq; at++) {
        const message = this.#messages.get(at)
        if (message !== undefined) yield message
      }
    } else for (const message of this.#messages.values()) if (message.seq >= seq) yield message
  }

  lastOf(filter: string): Stored | undefined {
    // Of all subjects the server knows no last message where the message of the last sequence is gone.
    if (filter === ">") return this.#messages.get(this.lastSeq)
    const exact = this.#bySubject.get(filter)?.at(-1)
    if (exact !== undefined) return this.#messages.get(exact)
    let last = 0
    if (isPattern(filter))
      for (const [subject, seqs] of this.#bySubject)
        if (matches(filter, subject)) last = Math.max(last, seqs.at(-1) ?? 0)
    return this.#messages.get(last)
  }

  nextOf(filter: string, seq: number): Stored | undefined {
    const exact = this.#bySubject.get(filter)
    if (exact !== undefined) return this.#messages.get(exact.find((each) => each >= seq) ?? 0)
    if (!isPattern(filter)) return undefined
    for (const message of this.from(seq)) if (matches(filter, message.subject)) return message
    return undefined
  }

  /** Returns the number of messages by subject. */
  subjects(filter: string): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const [subject, seqs] of this.#bySubject)
      if (matches(filter, subject)) counts[subject] = seqs.length
    return counts
  }

  takes(subject: string): boolean {
    return (this.config.subjects ?? []).some((filter) => matches(filter, subject))
  }

  /** Stores a message. Fails with ApiError where the server refuses it. */
  publish(subject: string, headers: HeaderMap, data: Buffer): { seq: number; duplicate: boolean } {
    const { config } = this
    // The server looks at the expected sequence first, and at the message id after that.
    const expected = headers.get("Nats-Expected-Last-Subject-Sequence")
    if (expected !== undefined) {
      const last = this.lastOf(subject)?.seq ?? 0
      if (last !== Number(expected)) throw new ApiError(10071, 400, `wrong last sequence: ${last}`)
    }
    // Schedules bring it with them.
    const mayRollUp = config.allow_rollup_hdrs === true || config.allow_msg_schedules === true
    if (headers.has("Nats-Rollup") && !mayRollUp)
      throw new ApiError(10111, 500, "rollup not permitted")
    const id = headers.get("Nats-Msg-Id") ?? ""
    const windowMs = (config.duplicate_window ?? 120e9) / 1e6
    if (id !== "") {
      const known = this.#ids.get(id)
      if (known !== undefined && known.until > this.#server.world.now)
        return { seq: known.seq, duplicate: true }
    }
    if ((config.max_msg_size ?? -1) > 0 && data.length > (config.max_msg_size ?? 0))
      throw new ApiError(10054, 400, "message size exceeds maximum allowed")
    const { max_bytes = -1 } = config
    const isFull = () => max_bytes > 0 && this.bytes + sizeOf({ data, subject }) > max_bytes
    if (config.discard === "new" && isFull())
      throw new ApiError(10077, 503, "maximum bytes exceeded")
    while (isFull()) {
      const oldest = this.#messages.get(this.firstSeq)
      if (oldest === undefined) break
      this.remove(oldest.seq)
      this.#server.events?.dropped(this, oldest)
    }
    const { seq } = this.append(subject, headers, data)
    if (id !== "") this.#ids.set(id, { seq, until: this.#server.world.now + windowMs })
    return { seq, duplicate: false }
  }

  append(subject: string, headers: HeaderMap, data: Buffer): Stored {
    const { world } = this.#server
    const seq = ++this.lastSeq
    const now = BigInt(Math.floor((world.wall + (world.age % 1)) * 1e3)) * 1000n
    const time = now > this.#lastTime ? now : this.#lastTime + 1n
    this.#lastTime = time
    const message: Stored = { seq, subject, headers, data, time }
    const isAlone =
      headers.get("Nats-Rollup") === "sub" ||
      this.config.max_msgs_per_subject === 1 ||
      headers.has("Nats-Schedule")
    if (isAlone) for (const old of [...(this.#bySubject.get(subject) ?? [])]) this.remove(old)
    this.#put(message)
    this.#arm(message)
    this.#server.stored(this, message)
    for (const follower of [...this.followers]) follower(message)
    for (const consumer of this.consumers.values()) consumer.pump()
    return message
  }

  remove(seq: number): boolean {
    const message = this.#messages.get(seq)
    if (message === undefined) return false
    this.#messages.delete(seq)
    this.bytes -= sizeOf(message)
    const seqs = this.#bySubject.get(message.subject)
    const at = seqs?.indexOf(seq) ?? -1
    if (at !== -1) seqs?.splice(at, 1)
    if (seqs?.length === 0) this.#bySubject.delete(message.subject)
    return true
  }

  /** An acknowledgement has removed a message of a work queue. */
  acknowledged(seq: number): void {
    const message = this.#messages.get(seq)
    if (message === undefined) return
    this.#acknowledged.push({ message, at: this.#server.world.now })
    if (this.#acknowledged.length > 32) this.#acknowledged.shift()
    this.remove(seq)
  }

  /**
   * A kill: the last removals had not reached the disk. The messages are in the stream again;
   * returns them.
   */
  forget(count: number): ReadonlyArray<Stored> {
    const since = this.#server.world.now - forgottenMs
    const back = count === 0 ? [] : this.#acknowledged.splice(-count)
    const known = back.flatMap(({ at, message }) => (at >= since ? [message] : []))
    const all = [...this.#messages.values(), ...known].sort((a, b) => a.seq - b.seq)
    this.#messages.clear()
    this.#bySubject.clear()
    this.bytes = 0
    for (const message of all) this.#put(message)
    return known
  }

  purge(filter: string, below: number): void {
    for (const { seq, subject } of [...this.from(1)])
      if (seq < below && matches(filter, subject)) this.remove(seq)
  }

  /** A power cut: the last messages are lost, and their sequences are given again. */
  truncate(count: number, lost: (message: Stored) => void): void {
    for (const message of [...this.from(this.lastSeq - count + 1)]) {
      lost(message)
      this.remove(message.seq)
    }
    this.lastSeq = Math.max(0, this.lastSeq - count)
    this.#acknowledged.length = 0
    for (const [id, { seq }] of this.#ids) if (seq > this.lastSeq) this.#ids.delete(id)
    for (const consumer of this.consumers.values()) consumer.truncated(this.lastSeq)
  }

  /** Its leader, which is that of its consumers too, gives its place up. */
  stepDown(): void {
    this.hasLeader = false
    for (const consumer of this.consumers.values()) consumer.stepDown()
  }

  /** A restart: ids of messages that are no longer there are forgotten. */
  restarted(): void {
    for (const [id, { seq }] of this.#ids) if (!this.#messages.has(seq)) this.#ids.delete(id)
    this.followers.clear()
    for (const consumer of this.consumers.values()) consumer.restarted()
  }

  info(filter?: string) {
    const iso = (time: bigint) => new Date(millisOf(time)).toISOString()
    const first = this.get(this.firstSeq)
    const never = "0001-01-01T00:00:00Z"
    return {
      config: { discard: "old", max_bytes: -1, max_age: 0, num_replicas: 1, ...this.config },
      created: new Date(this.createdMs).toISOString(),
      ts: new Date(this.#server.world.wall).toISOString(),
      state: {
        messages: this.size,
        bytes: this.bytes,
        first_seq: this.firstSeq,
        first_ts: first === undefined ? never : iso(first.time),
        last_seq: this.lastSeq,
        last_ts: this.lastSeq === 0 ? never : iso(this.#lastTime),
        consumer_count: this.consumers.size,
        num_subjects: this.#bySubject.size,
        ...(filter === undefined ? {} : { subjects: this.subjects(filter) })
      }
    }
  }

  #put(message: Stored): void {
    this.#messages.set(message.seq, message)
    this.bytes += sizeOf(message)
    const seqs = this.#bySubject.get(message.subject)
    if (seqs === undefined) this.#bySubject.set(message.subject, [message.seq])
    else seqs.push(message.seq)
  }

  /** Sets the clocks of a message with a TTL or a schedule. */
  #arm(message: Stored): void {
    const { headers } = message
    const { chance, process, world } = this.#server
    const ttl = headers.get("Nats-TTL")
    if (ttl !== undefined && this.config.allow_msg_ttl === true)
      world.after(Number.parseInt(ttl, 10) * 1000, () => this.#expire(message), process)
    const { max_age = 0 } = this.config
    if (max_age > 0 && max_age / 1e6 < longAgeMs)
      world.after(max_age / 1e6, () => this.#age(message), process)
    const schedule = headers.get("Nats-Schedule")
    if (schedule === undefined) return
    const due = Math.max(0, Date.parse(schedule.slice(4)) - world.wall)
    world.after(due + chance.between(0, 150), () => this.#fire(message), process)
  }

  #expire(message: Stored): void {
    if (this.#messages.get(message.seq) !== message) return
    this.remove(message.seq)
    // A marker leaves no marker.
    if (this.config.subject_delete_marker_ttl === undefined || message.data.length === 0) return
    const marker = new Map([
      ["Nats-Marker-Reason", "MaxAge"],
      ["Nats-TTL", `${this.config.subject_delete_marker_ttl / 1e9}s`]
    ])
    this.append(message.subject, marker, Buffer.alloc(0))
  }

  #age(message: Stored): void {
    if (this.#messages.get(message.seq) !== message) return
    this.remove(message.seq)
    this.#server.events?.dropped(this, message)
  }

  #fire(message: Stored): void {
    if (this.#messages.get(message.seq) !== message) return
    // A server that is down fires when it is back.
    if (this.#server.isDown || this.isStuck || !this.hasLeader) {
      this.#server.world.after(500, () => this.#fire(message), this.#server.process)
      return
    }
    const headers = new Map([...message.headers].filter(([name]) => !name.startsWith("Nats-")))
    headers.set("Nats-Scheduler", message.subject)
    headers.set("Nats-Schedule-Next", "purge")
    this.remove(message.seq)
    this.append(message.headers.get("Nats-Schedule-Target") ?? "", headers, message.data)
  }
}
