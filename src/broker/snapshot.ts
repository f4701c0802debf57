import type { StreamConfig, StreamState } from "@nats-io/jetstream"
import type { Msg } from "@nats-io/transport-node"
import { RequestError } from "@nats-io/transport-node"
import { Effect, Schema } from "effect"
import { timers } from "../time/timers.ts"
import { answerOf } from "./api-answer.ts"
import { Broker } from "./broker.ts"
import { BrokerError, ifFound, streamNotFound } from "./broker-error.ts"
import { natsClients } from "./clients.ts"

/*
 * Copies of whole streams, as the broker makes and takes them: each message with its sequence and the
 * time it was stored, which no client could give it.
 */

/** Size of one chunk, bytes, where the broker takes that much in one message. */
const chunkBytes = 128 * 1024
/** Chunks that may be on their way to the broker. */
const maxChunksSent = 32
/** How long the broker may take to begin, ms. */
const beginWithinMs = 60_000
/** How long no chunk may come, or be taken, ms. */
const maxSilenceMs = 30_000
/** How long the first chunk may find nobody, ms. The broker breaks off after 5 s without one. */
const announcedWithinMs = 4_000
/** Pause before that chunk is sent again, ms. */
const sendAgainMs = 50
/** How long the broker may take to make a stream of what it got, ms. */
const restoreWithinMs = 60 * 60_000

/** A stream's configuration and state when a copy of it was begun. */
export interface SnapshotInfo {
  readonly config: StreamConfig
  readonly state: StreamState
}

/** Chunks as they come, each with how long to wait for it. */
class Chunks {
  readonly #waiting: Array<Msg> = []
  #next = 0
  #wake: () => void = () => undefined

  readonly add = (message: Msg): void => {
    this.#waiting.push(message)
    this.#wake()
  }

  async take(): Promise<Msg> {
    if (this.#next === this.#waiting.length) {
      this.#waiting.length = this.#next = 0
      await new Promise<void>((resolve, reject) => {
        const timer = timers.after(maxSilenceMs, () =>
          reject(new Error(`the broker has sent nothing for ${maxSilenceMs / 1_000} s`))
        )
        this.#wake = () => {
          timers.cancel(timer)
          resolve()
        }
      })
    }
    const message = this.#waiting[this.#next++]
    if (message === undefined) throw new Error("there is no chunk")
    return message
  }
}

/** Throws where the last chunk says that the broker broke off. */
const checkEnd = ({ headers }: Msg): void => {
  const { code = 0, description = "" } = headers ?? {}
  if (code !== 0 && code !== 204) throw new Error(`the broker broke off: ${code} ${description}`)
}

/** True if nobody listened to a request. */
const isUnheard = (cause: unknown): boolean =>
  cause instanceof RequestError && cause.isNoResponders()

/** The number of a chunk, from 1, as the subject of its acknowledgement tells. */
const numberOf = ({ reply = "" }: Msg): number => Number(reply.slice(reply.lastIndexOf(".") + 1))

/**
 * Copies a stream without its consumers. What is stored after the copy was begun is not in it; what
 * is removed meanwhile may be missing in it.
 *
 * @param write called with each chunk, in order. The broker keeps back more while it takes its time.
 */
export const takeSnapshot = Effect.fnUntraced(function* (
  stream: string,
  write: (chunk: Uint8Array) => Promise<void>
) {
  const { connection, wire } = yield* natsClients
  const run = async (signal: AbortSignal): Promise<SnapshotInfo> => {
    const chunks = new Chunks()
    const inbox = wire.inbox()
    const stop = wire.subscribe(inbox, chunks.add)
    const { life } = wire
    try {
      const request = {
        deliver_subject: inbox,
        no_consumers: true,
        chunk_size: Math.min(chunkBytes, wire.largest)
      }
      const { config, state } = answerOf<SnapshotInfo>(
        await connection.request(`$JS.API.STREAM.SNAPSHOT.${stream}`, JSON.stringify(request), {
          timeout: beginWithinMs
        })
      )
      for (let expected = 1; ; expected++) {
        const chunk = await chunks.take()
        if (signal.aborted) throw new Error("stopped")
        if (wire.life !== life) throw new Error("the connection was lost meanwhile")
        if (chunk.data.length === 0) {
          checkEnd(chunk)
          return { config, state }
        }
        await write(chunk.data)
        // The last one is not acknowledged.
        if (chunk.reply === undefined || chunk.reply === "") continue
        if (numberOf(chunk) !== expected) throw new Error("a part of it did not come")
        chunk.respond()
      }
    } finally {
      stop()
    }
  }
  return yield* Effect.tryPromise({
    try: run,
    catch: (cause) => new BrokerError({ operation: `copy ${stream}`, cause })
  })
})

/**
 * Makes a stream of a copy. It is there as a whole, or not at all.
 *
 * @param config may differ from the copy's, as in the number of replicas.
 * @param chunks the copy's bytes.
 * @returns the state of the new stream.
 */
export const restoreSnapshot = Effect.fnUntraced(function* (
  { config, state }: SnapshotInfo,
  chunks: AsyncIterable<Uint8Array>
) {
  const { connection, wire } = yield* natsClients
  const size = Math.min(chunkBytes, wire.largest)
  const run = async (signal: AbortSignal): Promise<StreamState> => {
    const { deliver_subject: target } = answerOf<{ readonly deliver_subject: string }>(
      await connection.request(
        `$JS.API.STREAM.RESTORE.${config.name}`,
        JSON.stringify({ config, state }),
        { timeout: beginWithinMs }
      )
    )
    const sent: Array<Promise<void>> = []
    const send = async (part: Uint8Array) => {
      const answer = await connection.request(target, part, { timeout: maxSilenceMs })
      if (answer.data.length > 0) throw new Error(answer.string())
    }
    /**
     * The server that takes the chunks answers by another way than its subject is announced, and this
     * connection's server may hear of that later. The broker then has nothing of what was sent.
     */
    const sendFirst = async (part: Uint8Array) => {
      const since = timers.monotonicMs()
      const again = (cause: unknown) =>
        isUnheard(cause) && timers.monotonicMs() - since < announcedWithinMs
      while (true)
        try {
          return await send(part)
        } catch (cause) {
          if (!again(cause)) throw cause
          await new Promise<void>((resolve) => timers.after(sendAgainMs, resolve))
        }
    }
    let hasBegun = false
    for await (const chunk of chunks)
      for (let at = 0; at < chunk.length; at += size) {
        if (signal.aborted) throw new Error("stopped")
        const part = chunk.subarray(at, at + size)
        if (!hasBegun) {
          // The others go behind it, in order, once it is taken.
          await sendFirst(part)
          hasBegun = true
          continue
        }
        const sending = send(part)
        // Its failure is seen when it is awaited.
        sending.catch(() => undefined)
        sent.push(sending)
        if (sent.length > maxChunksSent) await sent.shift()
      }
    await Promise.all(sent)
    return answerOf<SnapshotInfo>(
      await connection.request(target, "", { timeout: restoreWithinMs })
    ).state
  }
  return yield* Effect.tryPromise({
    try: run,
    catch: (cause) => new BrokerError({ operation: `restore ${config.name}`, cause })
  })
})

const Marker = Schema.Struct({ v: Schema.Literal(1), backup: Schema.String })
const decodeMarker = Schema.decodeUnknownOption(Schema.fromJsonString(Marker))

/** Notes that a restore has begun. Until it is erased, nobody takes what is there for a whole. */
export const markRestoring = Effect.fnUntraced(function* (backup: string, replicas: number) {
  const { ask, jsm, names } = yield* natsClients
  const description = JSON.stringify({ v: 1, backup } satisfies typeof Marker.Type)
  yield* ask("note that a restore has begun", () =>
    jsm.streams.add({
      name: names.restoring,
      subjects: [names.subjects.removed(names.restoring)],
      num_replicas: replicas,
      description
    })
  )
})

/** Returns the id of the backup that is being restored, or was until that was broken off. */
export const readRestoring = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { restoring } = names
  const found = yield* ifFound(streamInfo("look for a restore", restoring), streamNotFound)
  if (found === undefined) return undefined
  const marker = decodeMarker(found.config.description ?? "")
  return marker._tag === "Some" ? marker.value.backup : "unknown"
})

/** Removes a stream, or does nothing where there is none. */
export const removeStream = Effect.fnUntraced(function* (name: string) {
  const { ask, jsm } = yield* natsClients
  yield* ifFound(
    ask(`remove ${name}`, () => jsm.streams.delete(name)),
    streamNotFound
  )
})

/** Returns whether a stream stores nothing that is published, as one does until it is restored. */
export const takesNothing = Effect.fnUntraced(function* (name: string) {
  const { names, streamInfo } = yield* Broker
  const found = yield* ifFound(streamInfo(`look at ${name}`, name), streamNotFound)
  return found?.config.subjects?.join() === names.subjects.removed(name)
})

/** Lets a stream store what is published to these subjects, and to no others. */
export const takeSubjects = Effect.fnUntraced(function* (
  name: string,
  subjects: ReadonlyArray<string>
) {
  const { ask, jsm, streamInfo } = yield* natsClients
  const { config } = yield* streamInfo(`look at ${name}`, name)
  yield* ask(`let ${name} take what is published`, () =>
    jsm.streams.update(name, { ...config, subjects: [...subjects] })
  )
})
