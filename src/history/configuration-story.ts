import { Effect, Option, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { readStream } from "../broker/scan.ts"
import type { Configuration, SettingDifference } from "../domain/configuration.ts"
import { differencesOf } from "../domain/configuration.ts"
import type { Fact } from "../domain/fact.ts"
import { factResult } from "../domain/fact.ts"
import { present } from "../domain/present.ts"
import { changeId } from "./configuration.ts"
import { parseFact } from "./read.ts"

/** A change of an endpoint, and what it changed. */
export interface ConfigurationStep {
  readonly revision: number
  /** ms since the epoch. */
  readonly at: number
  /** Its author, if known. */
  readonly by?: string
  /** The broker's user that recorded it, if known. */
  readonly user?: string
  readonly change: "added" | "changed" | "removed" | "unreadable"
  /** Since the last readable configuration. For an added endpoint: every setting that is set. */
  readonly differences: ReadonlyArray<SettingDifference>
  /** The configuration after the change. Absent if the endpoint was removed or is unreadable. */
  readonly configuration?: Configuration
}

/**
 * Returns one endpoint's changes, oldest first. A change that was recorded twice counts once.
 *
 * @param facts of the kind `endpoint-changed`, in any order.
 */
export const storyOf = (facts: ReadonlyArray<Fact>): ReadonlyArray<ConfigurationStep> => {
  const changes = new Map<string, Fact>()
  for (const fact of facts) {
    if (fact.change === undefined) continue
    const id = changeId("", fact.change.revision, fact.change.storedAt)
    // A watcher may record the change before its author does, and does not know the author.
    if (changes.get(id)?.by === undefined) changes.set(id, fact)
  }
  const story: Array<ConfigurationStep> = []
  let last: Configuration | undefined
  for (const { at, by, change, user } of [...changes.values()].toSorted(inOrder)) {
    if (change === undefined) continue
    const { isUnreadable, now, revision } = change
    const step = {
      revision,
      at,
      ...present({ by, user })
    }
    if (now !== undefined) {
      const differences = differencesOf(last, now)
      const what = last === undefined ? "added" : "changed"
      story.push({ ...step, change: what, differences, configuration: now })
      last = now
    } else if (isUnreadable === true) {
      story.push({ ...step, change: "unreadable", differences: [] })
    } else {
      story.push({ ...step, change: "removed", differences: [] })
      last = undefined
    }
  }
  return story
}

/** A truncated bucket assigns its revisions again, so the time decides first. */
const inOrder = (one: Fact, other: Fact): number =>
  one.at - other.at || (one.change?.revision ?? 0) - (other.change?.revision ?? 0)

/**
 * Reads all known changes of an endpoint, oldest first, also of a removed one. Reads the permanent
 * copy and the history, because the copy lags the history by moments.
 *
 * @param most only the latest so many. (Default: all)
 */
export const readStory = Effect.fnUntraced(function* (
  tenant: string,
  id: string,
  most = Number.POSITIVE_INFINITY
) {
  const { names } = yield* Broker
  const kind = "endpoint-changed"
  const subjects = [names.subjects.fact(tenant, id, factResult(kind), kind)]
  // What the oldest one changed is known from the one before it.
  const read = (stream: string) => {
    const messages = readStream({ stream, subjects })
    return Stream.runCollect(
      Number.isFinite(most) ? Stream.takeRight(messages, most + 1) : messages
    )
  }
  const all = yield* Effect.all([read(names.configuration), read(names.history)], {
    concurrency: 2
  })
  const facts = all
    .flat()
    .flatMap((message) => Option.toArray(parseFact(message.string(), message.seq)))
  return storyOf(facts.map(({ fact }) => fact)).slice(-most)
})
