import { assert, describe, it } from "@effect/vitest"
import {
  maxPlaces,
  nextJobs,
  type OpenJob,
  type Place
} from "../../../src/operations/jobs/job-queue.ts"

const now = { wallMs: 1_000_000, monotonicMs: 500_000 }

const job = (tenant: string, since: number, changes: Partial<OpenJob> = {}): OpenJob => ({
  ...{ id: `${tenant}${since}`, tenant, kind: "replay", since, notBefore: 0 },
  ...{ console: undefined, endedConsoles: [] },
  ...changes
})
const several = (tenant: string, count: number, since = 1) =>
  Array.from({ length: count }, (_, n) => job(tenant, since + n))

const place = (tenant: string, n: number, changes: Partial<Place> = {}): Place => ({
  ...{ id: `${tenant}${n}`, tenant, kind: "replay", takenAt: n, isHeld: true },
  ...changes
})
const places = (tenant: string, count: number, changes: Partial<Place> = {}) =>
  Array.from({ length: count }, (_, n) => place(tenant, n + 1, changes))

const taken = (open: ReadonlyArray<OpenJob>, at: ReadonlyArray<Place> = []) =>
  nextJobs(open, at, now).take.map(({ id }) => id)

describe("which job is next", () => {
  it("is of the tenant of which the fewest are worked on, and of it the one that waits longest", () => {
    const open = [...several("a", 1_000), job("b", 5_001), job("b", 5_000), job("c", 9_000)]
    assert.deepStrictEqual(taken(open).slice(0, 6), ["a1", "b5000", "c9000", "a2", "b5001", "a3"])
    assert.deepStrictEqual(taken(open, places("a", 1)).slice(0, 3), ["b5000", "c9000", "a2"])
  })

  it("is none that is to be tried again later, nor a second audit", () => {
    const later = job("a", 1, { notBefore: now.wallMs + 1 })
    const audit = job("*", 2, { kind: "audit" })
    assert.deepStrictEqual(taken([later, audit]), ["*2"])
    const auditing = place("*", 1, { kind: "audit" })
    assert.deepStrictEqual(taken([audit, job("a", 3)], [auditing]), ["a3"])
  })

  it("is first one whose console may have ended", () => {
    const begun = job("a", 50, { console: "other" })
    assert.deepStrictEqual(taken([job("b", 1), begun]), ["a50", "b1"])
    // It counts for its tenant.
    assert.deepStrictEqual(taken([job("a", 1), job("b", 2), begun]), ["a50", "b2", "a1"])
  })
})

describe("a job that is held back", () => {
  const full = places("a", maxPlaces)

  it.each<[string, ReadonlyArray<Place>, ReadonlyArray<OpenJob>, ReadonlyArray<string>]>([
    ["leaves its place to another tenant's", full, [job("b", 9)], ["a1"]],
    ["leaves it to its own tenant's", full, [job("a", 99)], ["a1"]],
    ["keeps it while there are places", full.slice(1), [job("b", 9)], []],
    ["keeps it while nobody waits", full, [], []],
    ["keeps it for some seconds", places("a", maxPlaces, { takenAt: 495_000 }), [job("b", 9)], []],
    ["keeps it while it sends", places("a", maxPlaces, { isHeld: false }), [job("b", 9)], []],
    [
      "keeps it where its tenant has fewer places than who waits",
      [...places("b", maxPlaces - 1, { isHeld: false }), place("a", 1)],
      [job("b", 99)],
      []
    ],
    ["leaves it once for each that waits", full, [job("b", 8), job("c", 9)], ["a1", "a2"]]
  ])("%s", (_, at, waiting, expected) => {
    const mine = at.map(({ id, tenant }) => job(tenant, 1, { id, console: "me" }))
    const next = nextJobs([...mine, ...waiting], at, now)
    assert.deepStrictEqual(next.giveUp, expected)
    if (at.length === maxPlaces) assert.lengthOf(next.take, 0)
  })
})
