import { Effect } from "effect"
import type { ReplayOptions } from "../../src/rounds/replay.ts"
import { openReplay, planReplay } from "../../src/rounds/replay.ts"
import type { Receiver } from "../kit/receiver.ts"

/** What a story asks a replay for, unless it says otherwise: all of acme's events. */
const optionsFor = (id: string, changes: Partial<ReplayOptions> = {}): ReplayOptions => ({
  tenant: "acme",
  endpoint: id,
  name: "first",
  asked: "all",
  by: "ana@host",
  types: [">"],
  since: 0,
  until: Date.now(),
  skipped: false,
  onlyMissing: false,
  mayFollow: false,
  ...changes
})

/** Replays, and counts what came of each event. */
export const replayTo = (id: string, changes: Partial<ReplayOptions> = {}) =>
  Effect.gen(function* () {
    const replay = yield* openReplay(optionsFor(id, changes))
    const counts = { begun: 0, finished: 0, before: replay.before, gone: 0 }
    const { before: _, ...left } = yield* replay.begin((begun) => counts[begun]++)
    return { ...counts, ...left }
  })

/** Plans a replay, and does no more. */
export const plannedFor = (id: string, changes: Partial<ReplayOptions> = {}) =>
  planReplay(optionsFor(id, changes))

/** Ids that came to a path, sorted. */
export const idsAt = ({ requests }: Receiver, path: string) =>
  requests
    .filter((request) => request.path === path)
    .map(({ headers }) => String(headers["webhook-id"]))
    .sort()

/** Ids of the so manieth events of `publishMany`, sorted. */
export const paid = (...numbers: ReadonlyArray<number>) =>
  numbers.map((n) => `invoice.paid-${n}`).sort()
export const upTo = (count: number) => Array.from({ length: count }, (_, n) => n)
