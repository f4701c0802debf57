import { globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"

/** Each room may import those of the lines below it, and no other room of its own line. */
const rooms = [
  ["src/cli"],
  ["src/service"],
  ["src/api"],
  ["src/operations", "src/worker", "src/relay", "src/reconcile"],
  ["src/delivery"],
  ["src/routing", "src/alerts", "src/rounds", "src/projection", "src/intake"],
  ["src/endpoints", "src/cluster", "src/connections"],
  ["src/history"],
  ["src/broker", "src/metrics"],
  ["src/policy", "src/text", "src/time", "src/receiver", "src/outbox"],
  ["src/domain", "src/client", "src/providers"]
]

const withinCli = [["commands"], ["flags"], ["terminal"], ["format"]].map((line) =>
  line.map((room) => `src/cli/${room}`)
)

/** The NATS clients are private to their room: an operation of broker/broker.ts is for the others. */
const natsClients = /^src\/broker\/(clients|nats-[^/]*)\.ts$/

interface Import {
  readonly from: string
  readonly to: string
}

const importsOf = (from: string): ReadonlyArray<Import> =>
  [...readFileSync(from, "utf8").matchAll(/(?:\bfrom|\bimport\(?|\bnew URL\()\s*"(\.[^"]+)"/g)].map(
    ([, to = ""]) => ({ from, to: join(dirname(from), to) })
  )

const imports = globSync("src/**/*.ts").flatMap(importsOf)

const isIn = (room: string) => (path: string) => path.startsWith(`${room}/`)

/** Returns the line of a file's room; -1 for a file in none of them. */
const lineOf = (lines: typeof rooms, path: string): number =>
  lines.findIndex((line) => line.some((room) => isIn(room)(path)))

/** Returns the imports that point upwards, or to another room of the same line. */
const upwards = (lines: typeof rooms, all: ReadonlyArray<Import>) =>
  all.filter(({ from, to }) => {
    const [line, target] = [lineOf(lines, from), lineOf(lines, to)]
    const room = lines[line]?.find((one) => isIn(one)(from))
    if (room === undefined || target === -1 || isIn(room)(to)) return false
    return target <= line
  })

/** Adds an edge between members of the innermost room that holds both files of an import. */
const addEdge = (rooms: Map<string, Map<string, Set<string>>>, { from, to }: Import): void => {
  const [one, other] = [from.split("/"), to.split("/")]
  const depth = one.findIndex((part, index) => part !== other[index])
  const [member, target] = [one[depth], other[depth]]
  if (member === undefined || target === undefined) return
  const room = one.slice(0, depth).join("/")
  const edges = rooms.get(room) ?? new Map<string, Set<string>>()
  rooms.set(room, edges)
  edges.set(member, (edges.get(member) ?? new Set()).add(target))
}

/** Returns what a member reaches by one import or more. */
const reached = (edges: ReadonlyMap<string, ReadonlySet<string>>, from: string) => {
  const found = new Set<string>()
  const visit = (member: string): void => {
    for (const next of edges.get(member) ?? []) {
      if (found.has(next)) continue
      found.add(next)
      visit(next)
    }
  }
  visit(from)
  return found
}

/**
 * Returns the members of each room that reach themselves: `<room>: <member>`. A member is a file or
 * a folder with all that it holds. Imports of types count: who reads one needs the other.
 */
const inCircles = (all: ReadonlyArray<Import>): ReadonlyArray<string> => {
  const rooms = new Map<string, Map<string, Set<string>>>()
  for (const each of all) addEdge(rooms, each)
  return [...rooms].flatMap(([room, edges]) =>
    [...edges.keys()]
      .filter((member) => reached(edges, member).has(member))
      .map((member) => `${room}: ${member}`)
  )
}

describe("imports", () => {
  it("point downwards, from room to room and within the command line", () => {
    assert.isAbove(imports.length, 3_000)
    assert.deepStrictEqual(
      imports.filter(({ from }) => lineOf(rooms, from) === -1),
      []
    )
    assert.deepStrictEqual(upwards(rooms, imports), [])
    assert.deepStrictEqual(upwards(withinCli, imports), [])
  })

  it("make no circle of files or folders within any room", () => {
    assert.deepStrictEqual(inCircles(imports), [])
  })

  it("are seen where they make a circle", () => {
    const circles = (...pairs: ReadonlyArray<readonly [from: string, to: string]>) =>
      inCircles(pairs.map(([from, to]) => ({ from, to })))
    assert.deepStrictEqual(
      circles(["src/a/x/one.ts", "src/a/y/two.ts"], ["src/a/y/three.ts", "src/a/x/four.ts"]),
      ["src/a: x", "src/a: y"]
    )
    assert.deepStrictEqual(
      circles(["src/a/one.ts", "src/a/x/two.ts"], ["src/a/x/three.ts", "src/a/one.ts"]),
      ["src/a: one.ts", "src/a: x"]
    )
    assert.deepStrictEqual(
      circles(["src/a/x/one.ts", "src/a/y/two.ts"], ["src/a/y/two.ts", "src/a/x.ts"]),
      []
    )
  })

  it("leave the NATS clients to the broker's room", () => {
    const others = imports.filter(({ from }) => !from.startsWith("src/broker/"))
    assert.deepStrictEqual(
      others.filter(({ to }) => natsClients.test(to)),
      []
    )
  })

  it("of the client and the outbox name no package: they run wherever programs do", () => {
    const files = globSync(["src/client/**/*.ts", "src/outbox/**/*.ts", "src/domain/*-rules.ts"])
    assert.isAbove(files.length, 15)
    const named = files.flatMap((file) => [
      ...readFileSync(file, "utf8").matchAll(/(?:\bfrom|\bimport\(?)\s*"[^.][^"]*"/g)
    ])
    assert.deepStrictEqual(named, [])
  })

  it("of the receiver's kit name no package but Node's: the clients are the program's own", () => {
    const files = globSync("src/{receiver,providers}/**/*.ts")
    assert.isAbove(files.length, 20)
    const named = files.flatMap((file) => [
      ...readFileSync(file, "utf8").matchAll(
        /(?:\bfrom |\bimport\(|\bimport )"(?!node:)[^.][^"]*"/g
      )
    ])
    assert.deepStrictEqual(named, [])
  })

  it("are seen where they point upwards or sideways", () => {
    const one = (from: string, to: string) => upwards(rooms, [{ from, to }]).length
    assert.strictEqual(one("src/policy/a.ts", "src/broker/b.ts"), 1)
    assert.strictEqual(one("src/alerts/a.ts", "src/rounds/b.ts"), 1)
    assert.strictEqual(one("src/alerts/a.ts", "src/alerts/b.ts"), 0)
    assert.strictEqual(one("src/alerts/a.ts", "src/broker/b.ts"), 0)
  })
})
