import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { type Document, type Names, namesOfCommands, namesOfRoutes } from "./names.ts"

const reference = join(import.meta.dirname, "../../docs/reference")
const keptFile = join(import.meta.dirname, "kept-names.json")

// What left on purpose, and why. Programs of users that hold such a name break: the changelog says so.
const gone: Readonly<Record<string, string>> = {
  "POST /v1/tenants/{}/events/{}":
    "a raw body goes to POST /raw-events/{}, so that a path means one thing",
  "GET /v1/status answer deliveries.handedOut":
    "it is deliveries.ackPending, the broker's own term",
  "GET /v1/status answer partitions.handedOut":
    "it is partitions.ackPending, the broker's own term",
  "GET /v1/status answer incoming.gateways.isSilent":
    "it is incoming.gateways.problem, which says why; isSilent was there for some hours",
  "GET /v1/status answer room.waiting":
    "backlogs have no room of their own since they hold references"
}

const kept = async (): Promise<Names> => {
  const lines = JSON.parse(await readFile(keptFile, "utf8")) as Record<string, string>
  return Object.fromEntries(
    Object.entries(lines).map(([owner, names]) => [owner, names === "" ? [] : names.split(" ")])
  )
}

const present = async (): Promise<Names> => {
  const commands = await readFile(join(reference, "commands.md"), "utf8")
  const document = JSON.parse(await readFile(join(reference, "openapi.json"), "utf8")) as Document
  return { ...namesOfCommands(commands), ...namesOfRoutes(document) }
}

const isMeant = (name: string): boolean =>
  Object.keys(gone).some((left) =>
    [left, `${left}.`, `${left} `].some((part) => `${name} `.startsWith(part))
  )

/** Names that were there and are not, and that `gone` does not list. */
const missing = (before: Names, now: Names): ReadonlyArray<string> =>
  Object.entries(before)
    .flatMap(([owner, names]) => {
      const there = new Set(now[owner])
      return now[owner] === undefined
        ? [owner]
        : names.filter((name) => !there.has(name)).map((name) => `${owner} ${name}`)
    })
    .filter((name) => !isMeant(name))

describe("Names that users hold", () => {
  // kept-names.json began with the help texts and the OpenAPI document of commit 058dc40e, from before
  // settings and operations were tables. `npm run reference` adds what has come since.
  it("stay: flags of commands, routes, their parameters and fields", async () => {
    const now = await present()
    const before = await kept()
    if (process.env.PETREL_WRITE_REFERENCE !== undefined) {
      const owners = [...new Set([...Object.keys(before), ...Object.keys(now)])].sort()
      const all = owners.map((owner) => [
        owner,
        [...new Set([...(before[owner] ?? []), ...(now[owner] ?? [])])].sort().join(" ")
      ])
      await writeFile(keptFile, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`)
    }
    assert.deepStrictEqual(
      missing(before, now),
      [],
      "removed or renamed; if it is meant, `gone` above says why"
    )
  })

  it("are told when one is gone: a flag, a route, a field", async () => {
    const now = await present()
    const { "endpoint add": flags = [], "GET /v1/status answer": status = [], ...rest } = now
    const renamed = { ...rest, "endpoint add": flags.filter((flag) => flag !== "--url") }
    assert.deepStrictEqual(
      missing({ ...now, "GET /v1/status answer": status }, renamed).toSorted(),
      ["GET /v1/status answer", "endpoint add --url"]
    )
  })

  it("lists under `gone` only what is gone", async () => {
    const now = await present()
    const all = Object.entries(now).flatMap(([owner, names]) => [
      owner,
      ...names.map((name) => `${owner} ${name}`)
    ])
    assert.deepStrictEqual(all.filter(isMeant), [])
  })
})
