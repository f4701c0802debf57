import { expect, test } from "vitest"
import { lifeOf } from "./life.ts"

const life = [
  "    0.500 w0.0 starts",
  "    2.200 event 4@1790000002200 is acme.e7, a user.made",
  "    2.300 PETREL_BACKLOG_0 3 holds 4@1790000002200.hook1.0, from PETREL_EVENTS:4:1790000002200",
  "    2.300 stores PETREL_BACKLOG_0 3 petrel.backlog.0.acme.hook1",
  "    2.400 hook1 gets acme.e7 attempt 1 from w0.0: 500",
  "    2.401 fact 9 attempt-failed 4.hook1.0 1 w0",
  '    3.000 {"at":1500,"does":"crash","worker":0,"ms":100}'
]
const others = [
  "    2.210 event 5@1790000002210 is acme.e70, a user.made",
  "    2.300 PETREL_BACKLOG_0 3 holds 5@1790000002210.hook1.0, from PETREL_EVENTS:5:1790000002210",
  "    2.400 hook2 gets acme.e7 attempt 1 from w0.0: 200",
  "    2.410 hook1 gets acme.e70 attempt 1 from w0.0: 200",
  "    2.411 fact 10 delivered 14.hook1.0 1 w0"
]

test("a delivery's life is told without what concerns others", () => {
  const log = [...life, ...others].sort()
  const failure = "4@1790000002200.hook1.0 attempt 1 from w0.0 at 2.400, 20 ms before its time"
  expect(lifeOf(log, failure)).toEqual([...life].sort())
})

test("a failure that names no delivery has no life", () => {
  expect(lifeOf(life, "8 requests, 7 at most")).toEqual([])
})
