import { isDeepStrictEqual } from "node:util"
import { Clock, Effect, Result, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import type { HeaderList } from "../broker/publication.ts"
import { readUser } from "../broker/user.ts"
import { isConflict, readEntry, readValues, writeValue } from "../broker/values.ts"
import type { Fact, FactKind } from "../domain/fact.ts"
import { type ExpectedRevision, refuseOther } from "../domain/problem.ts"
import type { SourceName } from "../domain/source.ts"
import { Source, sourceKey, sourceLabel } from "../domain/source.ts"
import { nobody } from "../domain/token.ts"
import { appendFact } from "../history/facts.ts"

/** A source as its bucket has it. */
export interface StoredSource {
  readonly source: Source
  readonly revision: number
}

/** There is no source of this name. */
export class SourceNotFound extends Schema.TaggedError<SourceNotFound>()("SourceNotFound", {
  tenant: Schema.String,
  id: Schema.String
}) {
  override get message() {
    return `there is no source ${sourceLabel(this)}: \`petrel source list\` shows those that exist`
  }
}

/** There is a source of this name already. */
export class SourceExists extends Schema.TaggedError<SourceExists>()("SourceExists", {
  tenant: Schema.String,
  id: Schema.String
}) {
  override get message() {
    return `there is a source ${sourceLabel(this)} already: change it with \`petrel source set\``
  }
}

/** A stored source does not parse: something other than this version of Petrel wrote it. */
export class SourceUnreadable extends Schema.TaggedError<SourceUnreadable>()("SourceUnreadable", {
  key: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `the source ${this.key} does not parse: ${this.problem}`
  }
}

const SourceJson = Schema.fromJsonString(Source)
const encode = Schema.encodeSync(SourceJson)
const decodeJson = Schema.decodeUnknownResult(SourceJson)

/** Decodes a value of the bucket of sources. */
export const decodeSource = (
  key: string,
  value: string
): Result.Result<Source, SourceUnreadable> => {
  const unreadable = (problem: string) => Result.fail(new SourceUnreadable({ key, problem }))
  const decoded = decodeJson(value)
  if (Result.isFailure(decoded))
    return unreadable(decoded.failure.message.replaceAll(/\s*\n\s*/g, " "))
  const own = sourceKey(decoded.success)
  return own === key ? Result.succeed(decoded.success) : unreadable(`it is that of ${own}`)
}

/** Reads a source, and the revision that a change must name, from the leader. */
const readSource = Effect.fnUntraced(function* (name: SourceName) {
  const { names } = yield* Broker
  const key = sourceKey(name)
  const { revision, text } = yield* readEntry(names.buckets.sources, key)
  const source = text === undefined ? undefined : yield* Effect.fromResult(decodeSource(key, text))
  return { source, revision }
})

/** Reads a source from the leader. Fails with SourceNotFound. */
export const getSource = Effect.fnUntraced(function* (name: SourceName) {
  const { revision, source } = yield* readSource(name)
  return source === undefined
    ? yield* new SourceNotFound(name)
    : ({ source, revision } satisfies StoredSource)
})

/**
 * Lists all sources, or a tenant's, in the order of their names. Skips one that does not parse, with
 * a warning.
 */
export const listSources = Effect.fnUntraced(function* (tenant?: string) {
  const { names } = yield* Broker
  const keys = `${tenant ?? "*"}.*`
  const values = yield* Stream.runCollect(readValues(names.buckets.sources, keys))
  const stored: Array<StoredSource> = []
  for (const { key, revision, text } of values.toSorted((a, b) => (a.key < b.key ? -1 : 1))) {
    if (text === "") continue
    const source = decodeSource(key, text)
    if (Result.isSuccess(source)) stored.push({ source: source.success, revision })
    else yield* Effect.logWarning(source.failure.message)
  }
  return stored
})

const named = new Set(["v", "tenant", "id", "createdAt", "updatedAt"])

/** Returns the names of the settings that differ. */
const changedBetween = (before: Source | undefined, after: Source): ReadonlyArray<string> => {
  const [from, to] = [before ?? {}, after].map(
    (one) => new Map<string, unknown>(Object.entries(one))
  )
  return [...new Set([...(from?.keys() ?? []), ...(to?.keys() ?? [])])].filter(
    (name) => !named.has(name) && !isDeepStrictEqual(from?.get(name), to?.get(name))
  )
}

/** What a change is about, in a refusal. */
const settingsOf = (name: SourceName): string => `the settings of ${sourceLabel(name)}`

const removal: HeaderList = [["KV-Operation", "DEL"]]

/** Stores a source, or its removal, and tells the history. */
const write = Effect.fnUntraced(function* (
  kind: Extract<FactKind, `source-${string}`>,
  source: Source,
  options: {
    readonly expected: number
    readonly before: Source | undefined
    readonly by: string | undefined
  }
) {
  const { names } = yield* Broker
  const { before, by, expected } = options
  const isRemoval = kind === "source-removed"
  const { seq: revision } = yield* writeValue(
    names.buckets.sources,
    sourceKey(source),
    isRemoval ? "" : encode(source),
    { expected, headers: isRemoval ? removal : [] }
  )
  const user = yield* readUser
  const fact: Fact = {
    ...{ v: 1, kind, tenant: source.tenant, endpoint: nobody, by, user },
    at: yield* Clock.currentTimeMillis,
    source: {
      id: source.id,
      provider: source.provider,
      revision,
      changed: isRemoval ? [] : changedBetween(before, source)
    }
  }
  yield* Effect.catch(appendFact(fact, `${kind}.${sourceKey(source)}.${revision}`), ({ message }) =>
    Effect.logWarning("the history has no fact of a change of a source", { message })
  )
  return { source, revision } satisfies StoredSource
})

/**
 * Adds a source. Fails with SourceExists if there is one of that name.
 *
 * @param by who adds it, recorded in the history.
 */
export const addSource = Effect.fnUntraced(function* (source: Source, by?: string) {
  const there = yield* readSource(source)
  if (there.source !== undefined) return yield* new SourceExists(source)
  const options = { expected: there.revision, before: undefined, by }
  return yield* Effect.catchIf(write("source-added", source, options), isConflict, () =>
    Effect.fail(new SourceExists(source))
  )
})

/**
 * Changes a source by compare-and-set. `change` is called again with the current value if another
 * write was faster. It returns undefined to leave the source unchanged.
 *
 * @param by who changes it, recorded in the history.
 * @param isExpected the revisions that may be changed; fails with OtherRevision for another. (Default:
 *   any)
 */
export const changeSource = Effect.fnUntraced(function* <E, R>(
  name: SourceName,
  change: (source: Source) => Effect.Effect<Source | undefined, E, R>,
  by?: string,
  isExpected?: ExpectedRevision
) {
  while (true) {
    const stored = yield* getSource(name)
    yield* refuseOther(settingsOf(name), stored.revision, isExpected)
    const source = yield* change(stored.source)
    if (source === undefined) return stored
    const options = { expected: stored.revision, before: stored.source, by }
    const written = yield* Effect.catchIf(
      write("source-changed", source, options),
      isConflict,
      () => Effect.undefined
    )
    if (written !== undefined) return written
  }
})

/**
 * Removes a source: what the provider sends from then on is refused.
 *
 * @param by who removes it, recorded in the history.
 * @param isExpected the revisions that may be removed; fails with OtherRevision for another. (Default:
 *   any)
 */
export const removeSource = Effect.fnUntraced(function* (
  name: SourceName,
  by?: string,
  isExpected?: ExpectedRevision
) {
  while (true) {
    const { revision: expected, source } = yield* getSource(name)
    yield* refuseOther(settingsOf(name), expected, isExpected)
    const written = yield* Effect.catchIf(
      write("source-removed", source, { expected, before: source, by }),
      isConflict,
      () => Effect.undefined
    )
    if (written !== undefined) return written
  }
})
