import { Effect, Stream } from "effect"
import { inAccess } from "../../broker/access.ts"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { type SnapshotInfo, takeSnapshot } from "../../broker/snapshot.ts"
import { isOfAccess } from "../../broker/topology.ts"
import { originStreams } from "../../domain/backlog-message.ts"
import type { Names } from "../../domain/names.ts"
import { snapshotFile, tailFile, writeBackupFile } from "./backup-files.ts"
import { BackupError, type BackupFile, type CopiedStream } from "./manifest.ts"
import { bucketTail, cameThroughBacklog, cameThroughQueue, partitionTail } from "./tail.ts"

/** Copies of one bucket until one is good. */
const maxCopies = 20
/** Readings of what came into a partition after its copies, until one misses nothing; some ms each. */
const maxReadings = 100

/** What a backup does, for who shows its progress. */
export type BackupStep =
  /** Bytes of the streams, as the broker counts them: more than a copy has. */
  | { readonly event: "begun"; readonly bytes: number; readonly streams: number }
  | { readonly event: "copying"; readonly stream: string }
  | { readonly event: "stream"; readonly stream: CopiedStream }

/** A stream that was copied. */
interface Copy {
  readonly name: string
  readonly info: SnapshotInfo
  readonly file: BackupFile
}

interface CopiesOptions {
  readonly names: Names
  readonly directory: string
  /** Whether the tokens are in an account of their own. */
  readonly isAccessApart: boolean
  readonly tell: (step: BackupStep) => Effect.Effect<void>
  /** Called with the number of bytes of a copy that came; the copy waits for it. */
  readonly copied: (bytes: number) => void | Promise<void>
}

/** Carries something out in the account that a stream is in. */
export const inAccountOf = <A, E, R>(
  names: Names,
  stream: string,
  effect: Effect.Effect<A, E, R | Broker>
) => (isOfAccess(names, stream) ? inAccess(effect) : effect)

/** Reads the state of a stream, in whichever account it is. */
export const stateOf = (names: Names, stream: string) =>
  inAccountOf(
    names,
    stream,
    Effect.flatMap(Broker, ({ streamInfo }) =>
      Effect.map(streamInfo(`look at ${stream}`, stream), ({ state }) => state)
    )
  )

/** The copies of an installation's streams, one after the other. */
export class Copies {
  readonly #options: CopiesOptions
  readonly #kept: Array<CopiedStream> = []

  constructor(options: CopiesOptions) {
    this.#options = options
  }

  /** Those that were made, in this order. */
  get streams(): ReadonlyArray<CopiedStream> {
    return this.#kept
  }

  /** Copies a stream from which nothing is removed, but what is too old. */
  readonly plain = (name: string) =>
    Effect.flatMap(this.#copy(name), (copy) => Effect.as(this.#keep(copy), copy.info.state))

  /** Copies a bucket that is written to all the time, and what was written meanwhile. */
  readonly busyBucket = (bucket: string) => {
    const name = `KV_${bucket}`
    return Effect.flatMap(this.#copy(name), (copy) =>
      Effect.flatMap(this.#tail(name, bucketTail(name, copy.info.state.last_seq)), (tail) =>
        this.#keep(copy, tail)
      )
    )
  }

  /**
   * Copies a bucket in which each value must keep its revision. A value that is written while it is
   * copied may be missing in the copy.
   */
  readonly quietBucket = Effect.fnUntraced({ self: this }, function* (bucket: string) {
    const { names } = this.#options
    const name = `KV_${bucket}`
    for (let tries = 1; tries <= maxCopies; tries++) {
      const copy = yield* this.#copy(name)
      const { last_seq } = yield* stateOf(names, name)
      if (last_seq === copy.info.state.last_seq) return yield* this.#keep(copy)
    }
    return yield* new BackupError({
      message: `${name} changed during each of ${maxCopies} attempts to copy it: back up when fewer endpoints, tokens or jobs are changed`
    })
  })

  /** Copies the queue and the backlogs of a partition, and what moved into them meanwhile. */
  readonly partition = Effect.fnUntraced({ self: this }, function* (index: number) {
    const { names } = this.#options
    const queue = yield* this.#copy(names.deliveries(index))
    const backlog = yield* this.#copy(names.backlog(index))
    for (let tries = 1; tries <= maxReadings; tries++) {
      const [inQueue, inBacklog] = [yield* this.#tailAfter(queue), yield* this.#tailAfter(backlog)]
      // What moved more than once may have been where nothing was read any more.
      if (yield* cameThroughBacklog(inQueue.copied, inBacklog.copied)) continue
      const streams = originStreams(names, index)
      if (yield* cameThroughQueue(inBacklog.copied, inQueue.copied, streams)) continue
      yield* this.#keep(queue, inQueue.tail)
      return yield* this.#keep(backlog, inBacklog.tail)
    }
    return yield* new BackupError({
      message: `in partition ${index}, deliveries moved back and forth during each of ${maxReadings} attempts to read what came after its copy: try again later`
    })
  })

  #copy(name: string) {
    const { copied, directory, names, tell } = this.#options
    const copy = writeBackupFile(directory, snapshotFile(name), (writer) =>
      inAccountOf(
        names,
        name,
        takeSnapshot(name, async (chunk) => {
          await writer.write(chunk)
          await copied(chunk.length)
        })
      )
    ).pipe(Effect.map(({ filled, ...file }): Copy => ({ name, file, info: filled })))
    return Effect.andThen(tell({ event: "copying", stream: name }), copy)
  }

  /** Copies what came into a stream after its copy. */
  readonly #tailAfter = Effect.fnUntraced({ self: this }, function* ({ info, name }: Copy) {
    const { last_seq: after } = yield* stateOf(this.#options.names, name)
    const upTo = info.state.last_seq
    const read = new Set<number>()
    const tail = yield* this.#tail(name, partitionTail(name, upTo, read))
    return { tail, copied: { stream: name, upTo, after, read } }
  })

  #tail(name: string, lines: Stream.Stream<Uint8Array, BrokerError, Broker>) {
    return writeBackupFile(this.#options.directory, tailFile(name), (writer) =>
      Stream.runForEach(lines, (line) => Effect.promise(() => writer.write(line)))
    ).pipe(Effect.map(({ filled: _, ...file }): BackupFile => file))
  }

  #keep({ file, info, name }: Copy, tail?: BackupFile) {
    const { isAccessApart, names, tell } = this.#options
    const stream: CopiedStream = {
      name,
      account: isAccessApart && isOfAccess(names, name) ? "access" : "streams",
      ...file,
      messages: info.state.messages,
      lastSeq: info.state.last_seq,
      config: { ...info.config },
      state: { ...info.state },
      ...(tail === undefined ? {} : { tail })
    }
    this.#kept.push(stream)
    return tell({ event: "stream", stream })
  }
}
