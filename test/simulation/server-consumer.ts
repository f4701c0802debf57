/*
 * A pull consumer of the model of nats-server.
 *
 * It does: limited pulls, ack wait, in-progress, NAK with a delay (one with a fraction redelivers at
 * once), max_ack_pending, redelivery after a restart, a lost end, messages that it has passed and
 * forgotten. It does not: backoff, max_deliver, sampling, pausing, priority groups, push delivery.
 */
import type { HeaderMap, ModelStream, Stored } from "./server-stream.ts"
import { forgottenMs, matches } from "./server-stream.ts"

/** What a consumer sends to the inbox of a pull. */
export type Deliver = (
  inbox: string,
  subject: string,
  reply: string,
  headers: HeaderMap | string,
  data: Buffer
) => void

export interface ConsumerSettings {
  readonly durable_name?: string | undefined
  readonly filter_subject?: string | undefined
  readonly filter_subjects?: ReadonlyArray<string> | undefined
  /** ns */
  readonly ack_wait?: number | undefined
  readonly max_ack_pending?: number | undefined
  readonly opt_start_seq?: number | undefined
}

interface PullRequest {
  readonly owner: object
  readonly deliver: Deliver
  readonly inbox: string
  left: number
  bytes: number
}

/** A message that was delivered and not acknowledged. */
export interface Pending {
  count: number
  due: number
  isNakked: boolean
  readonly deliveredAt: number
}

/** Size of a message as a pull's max_bytes counts it, besides data and subject; roughly. */
const overheadBytes = 64

const status = (line: string): string => `NATS/1.0 ${line}\r\n\r\n`
const empty = Buffer.alloc(0)

export class Consumer {
  readonly name: string
  readonly config: ConsumerSettings
  readonly pending = new Map<number, Pending>()
  /** The next sequence that was never delivered. */
  cursor = 1
  delivered = 0
  readonly #stream: ModelStream
  readonly #ackWaitMs: number
  readonly #redeliver = new Set<number>()
  /** The last first deliveries, the newest at the end. */
  readonly #first: Array<{ readonly seq: number; readonly at: number }> = []
  #pulls: Array<PullRequest> = []
  #armedFor = Number.POSITIVE_INFINITY

  constructor(stream: ModelStream, name: string, config: ConsumerSettings) {
    this.#stream = stream
    this.name = name
    this.config = config
    this.#ackWaitMs = (config.ack_wait ?? 30e9) / 1e6
    if (config.opt_start_seq !== undefined) this.cursor = config.opt_start_seq
  }

  get waiting(): number {
    return this.#pulls.length
  }

  get numPending(): number {
    let count = 0
    for (const { subject } of this.#stream.from(this.cursor)) if (this.#wants(subject)) count++
    return count
  }

  /** The sequence up to which all is acknowledged. */
  get ackFloor(): number {
    return this.pending.size === 0 ? this.cursor - 1 : Math.min(...this.pending.keys()) - 1
  }

  pull(request: PullRequest, expiresMs: number): void {
    const { process, world } = this.#stream.server
    this.#pulls.push(request)
    world.after(
      expiresMs,
      () => {
        if (this.#drop(request)) this.#end(request, "408 Request Timeout")
      },
      process
    )
    this.pump()
  }

  /** Forgets the pulls of a connection that is gone. */
  leave(owner: object): void {
    this.#pulls = this.#pulls.filter((pull) => pull.owner !== owner)
  }

  /** Delivers what there is to who asks. */
  pump(): void {
    const { isDown, world } = this.#stream.server
    if (isDown || !this.#stream.hasLeader) return
    for (let pull = this.#pulls[0]; pull !== undefined; pull = this.#pulls[0]) {
      const next = this.#next()
      if (next === undefined) return
      const { message } = next
      const size = message.data.length + message.subject.length + overheadBytes
      if (size > pull.bytes) {
        this.#pulls.shift()
        this.#end(pull, "409 Message Size Exceeds MaxBytes")
        continue
      }
      if (next.isNew) {
        this.cursor = message.seq + 1
        this.#first.push({ seq: message.seq, at: world.now })
        if (this.#first.length > 32) this.#first.shift()
      } else this.#redeliver.delete(message.seq)
      const count = (this.pending.get(message.seq)?.count ?? 0) + 1
      const due = world.now + this.#ackWaitMs
      this.pending.set(message.seq, { count, due, isNakked: false, deliveredAt: world.now })
      this.#arm(due)
      this.delivered++
      const { name } = this.#stream
      const where = `${name}.${this.name}.${count}.${message.seq}.${this.delivered}`
      const reply = `$JS.ACK._.acc.${where}.${message.time}.0.x`
      pull.deliver(pull.inbox, message.subject, reply, message.headers, message.data)
      pull.bytes -= size
      if (--pull.left === 0) this.#drop(pull)
    }
  }

  /** Takes an acknowledgement of any kind. */
  answer(seq: number, payload: string): void {
    const pending = this.pending.get(seq)
    if (pending === undefined) return
    const { now } = this.#stream.server.world
    if (payload.startsWith("+WPI")) {
      if (!pending.isNakked) pending.due = now + this.#ackWaitMs
    } else if (payload.startsWith("-NAK")) {
      const asked = payload.includes("{") ? JSON.parse(payload.slice(4)) : {}
      // The server cannot read a fraction, and redelivers at once.
      pending.due = now + (Number.isInteger(asked.delay) ? asked.delay / 1e6 : 0)
      pending.isNakked = true
      this.#redeliver.delete(seq)
    } else {
      this.pending.delete(seq)
      this.#redeliver.delete(seq)
      if (this.#stream.config.retention === "workqueue") this.#stream.acknowledged(seq)
      this.pump()
      return
    }
    this.#arm(pending.due)
  }

  /** The end of the stream is lost. */
  truncated(last: number): void {
    for (const seq of [...this.pending.keys()])
      if (seq > last) {
        this.pending.delete(seq)
        this.#redeliver.delete(seq)
      }
    this.cursor = Math.min(this.cursor, last + 1)
    this.#first.length = 0
  }

  /** Its leader gives its place up: who pulls is told so, or not. */
  stepDown(): void {
    const pulls = this.#pulls
    this.restarted()
    for (const pull of pulls)
      if (this.#stream.server.chance.isHit(0.5)) this.#end(pull, "409 Leadership Change")
  }

  /** A restart: pulls are gone, and a NAK's delay is kept only roughly. */
  restarted(): void {
    const { chance, world } = this.#stream.server
    this.#pulls = []
    for (const pending of this.pending.values()) {
      const left = Math.max(0, pending.due - world.now)
      pending.due = world.now + left * (pending.isNakked ? chance.between(0.9, 1) : 1)
    }
    this.#redeliver.clear()
    this.#rearm()
  }

  /**
   * The server was killed, and forgot some acknowledgements: the messages are redelivered. Of
   * others it kept the acknowledgement, and forgot that they were removed: those stay in the stream,
   * passed by the consumer.
   */
  unacknowledged(seqs: ReadonlyArray<number>): void {
    const { now } = this.#stream.server.world
    for (const seq of seqs)
      this.pending.set(seq, { count: 1, due: now, isNakked: false, deliveredAt: now })
    this.#rearm()
  }

  /** The server was killed, and forgot the last deliveries: it makes them anew. */
  rewind(count: number): void {
    const since = this.#stream.server.world.now - forgottenMs
    const forgotten = count === 0 ? [] : this.#first.splice(-count)
    const first = forgotten.find(({ at }) => at >= since)
    if (first === undefined) return
    this.cursor = Math.min(this.cursor, first.seq)
    for (const seq of [...this.pending.keys()])
      if (seq >= this.cursor) {
        this.pending.delete(seq)
        this.#redeliver.delete(seq)
      }
  }

  #wants(subject: string): boolean {
    const { filter_subject, filter_subjects } = this.config
    if (filter_subjects !== undefined) return filter_subjects.some((each) => matches(each, subject))
    return filter_subject === undefined || matches(filter_subject, subject)
  }

  #next(): { readonly message: Stored; readonly isNew: boolean } | undefined {
    for (const seq of this.#redeliver) {
      const message = this.#stream.get(seq)
      if (message !== undefined && this.pending.has(seq)) return { message, isNew: false }
      this.#redeliver.delete(seq)
      this.pending.delete(seq)
    }
    if (this.pending.size >= (this.config.max_ack_pending ?? 1000)) return undefined
    for (const message of this.#stream.from(this.cursor)) {
      if (this.#wants(message.subject)) return { message, isNew: true }
      this.cursor = message.seq + 1
    }
    return undefined
  }

  #drop(pull: PullRequest): boolean {
    const at = this.#pulls.indexOf(pull)
    if (at !== -1) this.#pulls.splice(at, 1)
    return at !== -1
  }

  #end({ deliver, inbox }: PullRequest, line: string): void {
    deliver(inbox, inbox, "", status(line), empty)
  }

  #arm(at: number): void {
    if (at >= this.#armedFor) return
    this.#armedFor = at
    const { process, world } = this.#stream.server
    world.after(at - world.now, () => this.#expire(at), process)
  }

  #rearm(): void {
    this.#armedFor = Number.POSITIVE_INFINITY
    for (const { due } of this.pending.values()) this.#arm(due)
  }

  #expire(at: number): void {
    if (at !== this.#armedFor) return
    const { server } = this.#stream
    const { now } = server.world
    let next = Number.POSITIVE_INFINITY
    for (const [seq, pending] of this.pending) {
      if (this.#redeliver.has(seq)) continue
      if (pending.due <= now + 1e-6) {
        if (!pending.isNakked) server.expired(this.#stream, seq, pending)
        this.#redeliver.add(seq)
      } else next = Math.min(next, pending.due)
    }
    this.#armedFor = Number.POSITIVE_INFINITY
    if (next < Number.POSITIVE_INFINITY) this.#arm(next)
    this.pump()
  }
}
