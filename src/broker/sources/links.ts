import type { StoredMsg, StreamInfo, StreamSource } from "@nats-io/jetstream"
import { jetstreamManager } from "@nats-io/jetstream"
import { Effect } from "effect"
import type { Restart } from "../../domain/names.ts"
import { readRestart } from "../../domain/names.ts"
import type { BatchLimits } from "../broker.ts"
import { Broker } from "../broker.ts"
import { ask, BrokerError, isNoSuchMessage } from "../broker-error.ts"
import { natsClients } from "../clients.ts"
import { readBatch } from "../nats-reads.ts"
import type { Divergence } from "./divergence.ts"

/** Time-out of a request to another account, ms. */
const answerWithinMs = 5_000
/** Sources that are looked at concurrently. */
const maxConcurrentLookups = 16

/** A stream that copies from another one. */
export interface SourceLink {
  readonly target: string
  readonly source: string
  /** The last restart of the source, by the configuration of the stream that copies. */
  readonly restart: Restart | undefined
  /** The subjects that it takes; none if it takes all. */
  readonly filters: ReadonlyArray<string>
  /** Returns the subject under which a message of the source is copied. */
  readonly copiedAs: (subject: string) => string
  /** The last sequence that it copied, as the broker has it in memory; 0 if that is not known. */
  readonly copied: number
  readonly reader: SourceReader
}

/** Reads a source, in whatever account it is. */
interface SourceReader {
  readonly info: Effect.Effect<StreamInfo, BrokerError>
  /** Reads messages in order, from a sequence on. Any replica may answer, and may lag. */
  readonly batch: (
    subject: string,
    seq: number,
    limits: BatchLimits
  ) => Effect.Effect<ReadonlyArray<StoredMsg>, BrokerError>
  /** Reads one message from the leader; null where there is none. */
  readonly message: (seq: number) => Effect.Effect<StoredMsg | null, BrokerError>
}

type Source = Pick<StreamSource, "filter_subject" | "subject_transforms">

/** Returns the subjects that a source takes; none if it takes all. */
export const filtersOf = ({ filter_subject, subject_transforms = [] }: Source) =>
  [filter_subject ?? "", ...subject_transforms.map(({ src = "" }) => src)].filter(
    (filter) => filter !== "" && readRestart(filter) === undefined
  )

/** Returns the last restart of a source; undefined if there was none. */
export const restartOf = ({ subject_transforms = [] }: Source): Restart | undefined =>
  subject_transforms
    .map(({ src = "" }) => readRestart(src))
    .find((restart) => restart !== undefined)

/** Servers report this since 2.15; the client's type does not have it. */
export const copiedOf = (info: object | undefined): number =>
  info !== undefined && "seq" in info && typeof info.seq === "number" ? info.seq : 0

/** A source with its own state, or with the reason why that could not be read. */
export interface ReadLink {
  readonly link: SourceLink
  readonly info: StreamInfo | BrokerError
}

const readerOf = Effect.fnUntraced(function* ({ external, name }: StreamSource) {
  const look = `look at the source ${name}`
  if (external === undefined) {
    const { batch, readMessage, streamInfo } = yield* Broker
    const reader: SourceReader = {
      info: streamInfo(look, name),
      batch: (subject, seq, limits) => batch(name, subject, seq, limits),
      message: (seq) => readMessage(look, name, { seq })
    }
    return reader
  }
  const { connection } = yield* natsClients
  const jsm = yield* Effect.promise(() =>
    jetstreamManager(connection, {
      apiPrefix: external.api,
      checkAPI: false,
      timeout: answerWithinMs
    })
  )
  const reader: SourceReader = {
    info: ask(look, () => jsm.streams.info(name)),
    batch: (subject, seq, limits) => readBatch(jsm, name, subject, seq, limits),
    message: (seq) =>
      Effect.catchIf(
        ask(look, () => jsm.streams.getMessage(name, { seq })),
        isNoSuchMessage,
        () => Effect.succeed(null)
      )
  }
  return reader
})

/** Returns what the end of a source shows: that it has less than was copied from it. */
export const lostOf = ({ info, link }: ReadLink): ReadonlyArray<Divergence> => {
  const { copied, restart, source, target } = link
  if (info instanceof BrokerError || info.state.last_seq >= copied) return []
  const from = info.state.last_seq + 1
  const restarts = restart?.number ?? 0
  return [{ target, source, restarts, start: from, from, to: copied, copied }]
}

/**
 * Reads what a stream copies from, each source from its leader. The stream's own state is read
 * first: what it holds by then, its sources had before.
 *
 * @param known what its leader has said of it. (Default: it is asked)
 */
export const readLinks = Effect.fnUntraced(function* (target: string, known?: StreamInfo) {
  const { names, streamInfo } = yield* Broker
  const info = known ?? (yield* streamInfo(`look at ${target}`, target))
  const links = yield* Effect.forEach(
    info.config.sources ?? [],
    Effect.fnUntraced(function* (source) {
      const link: SourceLink = {
        target,
        source: source.name,
        restart: restartOf(source),
        filters: filtersOf(source),
        copiedAs:
          source.name === names.intake ? names.subjects.eventOfIncoming : (subject) => subject,
        copied: copiedOf(info.sources?.find(({ name }) => name === source.name)),
        reader: yield* readerOf(source)
      }
      const state = yield* Effect.match(link.reader.info, {
        onFailure: (error) => error,
        onSuccess: (info) => info
      })
      return { link, info: state } satisfies ReadLink
    }),
    { concurrency: maxConcurrentLookups }
  )
  return { info, links }
})
