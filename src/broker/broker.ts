import type { ConsumerConfig, ConsumerInfo, JsMsg, StoredMsg, StreamInfo } from "@nats-io/jetstream"
import type { KvEntry, KvWatchEntry } from "@nats-io/kv"
import type { Msg, ServerInfo } from "@nats-io/transport-node"
import type { Scope, Semaphore, Stream } from "effect"
import { Context, type Effect } from "effect"
import type { Names } from "../domain/names.ts"
import type { BrokerError } from "./broker-error.ts"
import type { HeaderList, PubAck, PublishError } from "./publication.ts"
import type { Pull } from "./pull.ts"
import type { UnansweredStream } from "./unanswered.ts"
import type { Life } from "./wire.ts"

/** A message that was read; valid until the callback returns. */
export interface Seen {
  readonly message: Msg
  readonly seq: number
  /** When the broker stored it, ns since the epoch, as text. */
  readonly nanoseconds: string
}

/** What a reading through an unordered consumer covers. */
export interface ReadingOptions {
  readonly stream: string
  readonly subjects: ReadonlyArray<string>
  /** Sequences, both inclusive. */
  readonly from: number
  readonly to: number
  /** Read without bodies. (Default: false) */
  readonly headersOnly?: boolean
  /** The message that was read before `from`, where the reading goes on from an earlier one. */
  readonly after?: Pick<Seen, "nanoseconds" | "seq"> | undefined
}

/** Which messages of a stream to read. Sequences are inclusive; times in ms since the epoch. */
export interface Range {
  readonly stream: string
  readonly subjects: ReadonlyArray<string>
  readonly fromSeq?: number | undefined
  readonly fromTime?: number | undefined
  /** Reads only the last message of each subject. (Default: false) */
  readonly lastOfSubjects?: boolean
  /** Omits the bodies. (Default: false) */
  readonly headersOnly?: boolean
  /** How many messages its reader wants, if that is known: a direct get reads no more at first. */
  readonly wanted?: number
  /** Continues with messages that are stored later. (Default: end with the last one stored now) */
  readonly follow?: boolean
}

/**
 * Limits of one request. Bytes are limited too, because the broker drops a connection that takes
 * too much at once.
 */
export interface BatchLimits {
  readonly batch: number
  readonly max_bytes: number
}

/** Where a batch begins: at a sequence, or at a time (ms since the epoch). */
export type BatchStart = number | { readonly time: number }

/** Names one message: by sequence, the last of a subject, or the next of a subject. */
export type MessageQuery =
  | { readonly seq: number }
  | { readonly last_by_subj: string }
  | { readonly seq: number; readonly next_by_subj: string }

/** The entries of a bucket, as they come. */
export type Watch = AsyncIterable<KvWatchEntry> & { readonly stop: () => void }

type Body = Uint8Array | string

/**
 * All that Petrel does with a broker. The NATS clients are behind it, private to this room
 * (clients.ts), so that a simulation can take their place.
 *
 * `operation` names a request in the error of its failure.
 */
export class Broker extends Context.Service<
  Broker,
  {
    readonly names: Names

    /**
     * Stores one message. After a time-out it may be stored nonetheless: give it a `Nats-Msg-Id`
     * and publish it again. Headers say what it is stored with: id, TTL, expected sequence, rollup,
     * schedule.
     *
     * @param life the only connection that the message may be sent on. (Default: any)
     */
    readonly publish: (
      subject: string,
      body: Body,
      headers: HeaderList,
      life?: Life
    ) => Effect.Effect<PubAck, PublishError>
    /** `publish` for callers without a fiber: `settle` is called once. */
    readonly send: (
      subject: string,
      body: Body,
      headers: HeaderList,
      settle: (result: PubAck | PublishError) => void
    ) => void
    /** The current connection, for `publish`; undefined while there is none. */
    readonly life: () => Life | undefined
    /** The streams for which this connection's publishes have gone unanswered for a while. */
    readonly unanswered: () => ReadonlyArray<UnansweredStream>
    /** Maximum size of a message, headers included, bytes. */
    readonly largestMessage: () => number

    /** Pulls messages of a consumer in batches that fit the free capacity, until stopped. */
    readonly pull: (options: Pull) => Effect.Effect<void>
    /** The streams that are pulled from in vain: they, or their consumers, are missing. */
    readonly failedPulls: () => ReadonlyArray<string>

    /** Reads one message from the stream's leader; null where there is none. */
    readonly readMessage: (
      operation: string,
      stream: string,
      query: MessageQuery
    ) => Effect.Effect<StoredMsg | null, BrokerError>
    /**
     * Reads messages of a subject in order, from a sequence or a time on, by one direct get. It
     * returns no more than the limits allow, but at least one if there is one. Any replica may
     * answer, and may lag. The stream must allow direct gets.
     */
    readonly batch: (
      stream: string,
      subject: string,
      from: BatchStart,
      limits: BatchLimits
    ) => Effect.Effect<ReadonlyArray<StoredMsg>, BrokerError>
    /** Reads through an ordered consumer, from a sequence on. Any replica may answer. */
    readonly read: (range: Range, fromSeq: number) => Stream.Stream<JsMsg, BrokerError>
    /**
     * Does the same without a Stream, for many messages of which most are skipped.
     *
     * @param see returns true to end the reading.
     * @returns the last sequence seen, and whether `see` ended it.
     */
    readonly see: (
      range: Range,
      fromSeq: number,
      see: (message: JsMsg) => boolean
    ) => Effect.Effect<{ readonly seq: number; readonly enough: boolean }, BrokerError, Scope.Scope>
    /**
     * Reads a range through an unordered, unacknowledged consumer, at a third of the cost of `see`:
     * until its end, a lost message or a silence. `readThrough` goes on from there.
     *
     * @returns the next sequence to read.
     */
    readonly readRun: (
      options: ReadingOptions,
      see: (seen: Seen) => void
    ) => Effect.Effect<number, BrokerError>
    /** Returns the sequence of the first message at or after a time (ms since the epoch). */
    readonly firstSince: (stream: string, time: number) => Effect.Effect<number, BrokerError>
    /** Counts the messages stored since a time (ms since the epoch), of a subject or all. */
    readonly countSince: (
      stream: string,
      since: number,
      subject?: string
    ) => Effect.Effect<number, BrokerError>

    /** Reads the entry under a key of a bucket from the leader; null where there has been none. */
    readonly entry: (bucket: string, key: string) => Effect.Effect<KvEntry | null, BrokerError>
    /** Follows the entries of a bucket, those that are there first. */
    readonly watch: (bucket: string) => Effect.Effect<Watch, BrokerError, Scope.Scope>

    /**
     * Reads a stream's configuration and state from its leader.
     *
     * @param options `subjects_filter` counts messages by subject.
     */
    readonly streamInfo: (
      operation: string,
      stream: string,
      options?: { readonly subjects_filter?: string; readonly deleted_details?: boolean }
    ) => Effect.Effect<StreamInfo, BrokerError>
    /**
     * Lists the names of all streams.
     *
     * @param subject only those that take it.
     */
    readonly streamNames: (
      operation: string,
      subject?: string
    ) => Effect.Effect<ReadonlyArray<string>, BrokerError>
    /**
     * Reads configuration and state of streams by one request: in the order of their names, and no
     * more than fit into one answer (256). Returns none where this user may not ask for it.
     */
    readonly listStreams: (
      operation: string
    ) => Effect.Effect<ReadonlyArray<StreamInfo>, BrokerError>
    readonly consumerInfo: (
      operation: string,
      stream: string,
      consumer: string
    ) => Effect.Effect<ConsumerInfo, BrokerError>
    /** Makes a durable consumer; does nothing where there is one of the same configuration. */
    readonly makeConsumer: (
      operation: string,
      stream: string,
      config: Partial<ConsumerConfig> & { readonly durable_name: string }
    ) => Effect.Effect<unknown, BrokerError>
    /** Deletes one message. Returns false where it is gone already. */
    readonly deleteMessage: (
      operation: string,
      stream: string,
      seq: number
    ) => Effect.Effect<boolean, BrokerError>
    /** Deletes the messages below a sequence: of one subject, or all. */
    readonly purge: (
      operation: string,
      stream: string,
      options: { readonly filter?: string; readonly seq: number }
    ) => Effect.Effect<unknown, BrokerError>

    /** Sends a message that is not stored. Does nothing once the connection is closed. */
    readonly say: (subject: string, body: Body, reply?: string) => void
    /**
     * Receives messages that are not stored, until the returned function is called.
     *
     * @param onPermission called where the broker refuses this, and where it permits it again.
     */
    readonly listen: (
      subject: string,
      receive: (message: Msg) => void,
      onPermission?: (isPermitted: boolean) => void
    ) => () => void
    /** Makes a subject for the answers to one question. */
    readonly inbox: () => string
    /** Waits until the broker has processed all that was said to it. */
    readonly flush: Effect.Effect<void, BrokerError>

    /** The server at the other end. */
    readonly server: () => Partial<Pick<ServerInfo, "cluster" | "max_payload" | "version">>
    /** Asks as whom the server knows this connection's user: the answer as it comes, JSON. */
    readonly userInfo: Effect.Effect<string, BrokerError>
    /** Calls `listener` on each reconnect, until the returned function is called. */
    readonly onReconnect: (listener: () => void) => () => void
    /** Waits until the connection is closed for good. */
    readonly closed: Effect.Effect<unknown>
    readonly isClosed: () => boolean
    /**
     * Bounds concurrent searches through streams. When a broker comes back, a thousand publishes
     * may be searched for at once, and each search holds up to 4 MiB.
     */
    readonly oneOfFew: Semaphore.Semaphore
  }
>()("petrel/broker/Broker") {}
