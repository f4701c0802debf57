import { createHash } from "node:crypto"
import { Effect, Option, Schema } from "effect"
import { jsonOf, Timestamp } from "../../domain/timestamp.ts"

/** A backup is not usable, or cannot be written. The message says what to do. */
export class BackupError extends Schema.TaggedError<BackupError>()("BackupError", {
  message: Schema.String
}) {}

/** A message of a stream, by its sequence and when it was stored, ms since the epoch. */
const Position = Schema.Struct({ seq: Schema.Int, at: Timestamp })
export type Position = typeof Position.Type

/** A file of a backup. */
const BackupFile = Schema.Struct({
  file: Schema.String,
  bytes: Schema.Int,
  /** In hexadecimal digits. */
  sha256: Schema.String
})
export type BackupFile = typeof BackupFile.Type

/** The copy of a stream. */
const CopiedStream = Schema.Struct({
  name: Schema.String,
  /** Whether it is in the account of the streams or in that of the tokens. */
  account: Schema.Literals(["streams", "access"]),
  ...BackupFile.fields,
  messages: Schema.Int,
  /** Of its last message; 0 if it never had one. */
  lastSeq: Schema.Int,
  /** Its configuration and state, as the broker gives and takes them. */
  config: Schema.Record(Schema.String, Schema.Unknown),
  state: Schema.Record(Schema.String, Schema.Unknown),
  /** What was stored after the copy was begun, and belongs to it. */
  tail: Schema.optionalKey(BackupFile)
})
export type CopiedStream = typeof CopiedStream.Type

/** What a backup holds, in the order in which it was copied. Times in ms since the epoch. */
const Manifest = Schema.Struct({
  v: Schema.Literal(1),
  id: Schema.String,
  petrel: Schema.String,
  /** Of what is stored: headers, keys, subjects and records. */
  format: Schema.Int,
  natsServer: Schema.String,
  installation: Schema.NullOr(Schema.String),
  prefix: Schema.String,
  eventRoot: Schema.String,
  partitions: Schema.Int,
  ackWaitMs: Schema.Number,
  startedAt: Timestamp,
  completedAt: Timestamp,
  /** Up to this sequence of the events, all were routed when the backup was begun. */
  routedUpTo: Schema.Int,
  /** The last fact when the backup was begun. */
  historyFrom: Schema.Int,
  /** The last fact and the last event of the copy. */
  history: Position,
  events: Position,
  /** The last dead letter before the history was copied. */
  deadBefore: Schema.Int,
  streams: Schema.Array(CopiedStream)
})
export type Manifest = typeof Manifest.Type
/** A manifest as commands print it: with times as texts. */
export const encodeManifest = jsonOf(Manifest)

export const manifestFile = "manifest.json"

const sha256Of = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Returns the text of a manifest, with the checksum of itself. */
export const manifestText = (manifest: Manifest): string => {
  const body = Schema.encodeSync(Manifest)(manifest)
  return `${JSON.stringify({ ...body, sha256: sha256Of(JSON.stringify(body)) }, undefined, 2)}\n`
}

const Sealed = Schema.fromJsonString(
  Schema.StructWithRest(Schema.Struct({ v: Schema.Int, sha256: Schema.String }), [
    Schema.Record(Schema.String, Schema.Unknown)
  ])
)
const decodeSealed = Schema.decodeUnknownOption(Sealed)
const decode = Schema.decodeUnknownEffect(Manifest)

/** Parses a manifest. Fails where it is damaged, or of another version. */
export const readManifest = Effect.fnUntraced(function* (text: string) {
  const damaged = new BackupError({
    message: `${manifestFile} of this backup is damaged: restore another backup`
  })
  const sealed = Option.getOrUndefined(decodeSealed(text))
  if (sealed === undefined) return yield* damaged
  const { sha256, ...body } = sealed
  if (body.v !== 1)
    return yield* new BackupError({
      message: `this backup has the form ${body.v}, and this version of Petrel reads the form 1: use the version that made it`
    })
  if (sha256 !== sha256Of(JSON.stringify(body))) return yield* damaged
  return yield* Effect.mapError(decode(body), () => damaged)
})
