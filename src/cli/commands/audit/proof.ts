import { access, constants, readFile, stat, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import { Effect, Option, Schema } from "effect"
import packageJson from "../../../../package.json" with { type: "json" }
import type { Audit } from "../../../history/audit/audit.ts"
import type { ProofOrigin, StreamProof } from "../../../history/audit/proof.ts"
import { compareWithProof, Proof, proofOf } from "../../../history/audit/proof.ts"
import { goneTooEarly, type StreamBeginning } from "../../../history/audit/reach.ts"
import type { StreamReading } from "../../../history/audit/stream-reading.ts"
import { countText } from "../../../text/quantities.ts"
import { Refused, refusal } from "../../refused.ts"
import { remark } from "../../terminal/stdout.ts"

const why = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Proof))

/** Reads a proof that an earlier audit has written. */
export const readProof = Effect.fnUntraced(function* (path: string) {
  const text = yield* Effect.tryPromise({
    try: () => readFile(path, "utf8"),
    catch: (error) => refusal([`cannot read the proof: ${why(error)}`])
  })
  const proof = Option.getOrUndefined(decode(text))
  if (proof !== undefined) return proof
  return yield* refusal([`${path} is not a proof that \`petrel audit --proof\` wrote`])
})

/**
 * Refuses a path that a proof cannot be written to, before an audit reads for minutes. Leaves a
 * file that is there as it is, and makes none.
 */
export const checkProofPath = (path: string) =>
  Effect.tryPromise({
    try: async () => {
      const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error
        return undefined
      })
      if (found?.isDirectory()) throw new Error(`${path} is a directory`)
      await access(found === undefined ? dirname(path) : path, constants.W_OK)
    },
    catch: (error) => refusal([`cannot write the proof: ${why(error)}`])
  })

/** Writes the scope of an audit and its result. */
export const writeProof = (path: string, audit: Audit, origin: Omit<ProofOrigin, "petrel">) =>
  Effect.tryPromise({
    try: () =>
      writeFile(
        path,
        `${JSON.stringify(proofOf(audit, { ...origin, petrel: packageJson.version }), null, 2)}\n`
      ),
    catch: (error) => new Refused({ message: `cannot write the proof: ${why(error)}` })
  })

const compare = Effect.fnUntraced(function* (
  name: string,
  before: StreamProof,
  now: StreamReading,
  begins: StreamBeginning
) {
  const { changed, gone, removed, same } = compareWithProof(before, now, begins)
  const rest = gone === 0 ? "" : `; ${countText(gone)} are too old to be compared`
  yield* remark(`${name}: ${countText(same)} are as the proof says${rest}`)
  return [
    ...(removed === undefined
      ? []
      : [
          `${name} ${countText(removed.from)} to ${countText(removed.to)} are gone, though ${goneTooEarly}`
        ]),
    ...changed.map(
      ({ first, last }) =>
        `${name} ${countText(first)} to ${countText(last)} are not what they were`
    )
  ]
})

/** Returns how the streams differ from what a proof recorded; undefined if they match. */
export const compareWith = Effect.fnUntraced(function* (before: Proof, { reading, reach }: Audit) {
  const found = [
    ...(yield* compare("events", before.events, reading.events, reach.begins.events)),
    ...(yield* compare("facts", before.history, reading.history, reach.begins.history))
  ]
  return found.length === 0 ? undefined : `the past has been changed: ${found.join(", ")}`
})
