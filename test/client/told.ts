import { readFile, writeFile } from "node:fs/promises"
import { stripTypeScriptTypes } from "node:module"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { receiver } from "../kit/receiver.ts"
import { type Runtime, runModule } from "../kit/runtimes.ts"
import type { tellStory } from "./story.ts"

type Story = Awaited<ReturnType<typeof tellStory>>

/** Asserts what a story came to, of whatever runtime and over whatever. */
export const assertTold = (story: Story, prefix: string): void => {
  assert.deepInclude(story, {
    changed: ["maxInFlight", "contact"],
    first: { id: `acme.${prefix}-one`, duplicate: false },
    again: true,
    summary: { stored: 24, duplicates: 0, failed: 1, failures: [`${prefix}-7`] },
    delivered: 28,
    body: '{"total":"10.00"}',
    dead: Array.from({ length: 3 }, () => "attempts" as const),
    statuses: [503, 503, 503],
    plan: 3,
    firstSeen: true,
    lastSeen: "done"
  })
  assert.isUndefined(story.known)
  assert.match(story.stale, /^PetrelProblem 412 revision-mismatch: endpoints\.patch: /)
  assert.match(story.missing, /^PetrelProblem 404 not-found: endpoints\.get: /)
  assert.match(story.invalid, /^PetrelProblem 400 invalid-request: endpoints\.put: url "ftp/)
  assert.lengthOf(story.outcomes, 25)
  assert.deepInclude(story.job, { kind: "redelivery", state: "done" })
}

/** A program that tells the story with `petrel/client` as it is installed, and prints what it came to. */
const program = `import { httpClient, natsClient } from "petrel/client"
import { tellStory } from "./story.js"
const { nats, prefix, receiver, tenant, token, url } = JSON.parse(process.argv.at(-1))
const isWell = async () => void (await fetch(receiver + "/well"))
const tell = (petrel) => tellStory(petrel, { receiver, prefix, isWell })
if (nats === undefined) console.log(JSON.stringify(await tell(httpClient({ url, token, tenant }))))
else {
  const { connect, headers } = await import(nats.package)
  const connection = await connect({ servers: nats.url })
  console.log(JSON.stringify(await tell(natsClient({ connection, headers, tenant }))))
  await connection.close()
}
`

const natsPackage = import.meta.resolve("@nats-io/transport-node")

let stories = 0

/**
 * Runs the program in a folder that has it and `petrel/client`, and asserts what it tells.
 *
 * @param place where it asks.
 */
export const tellInstalled = Effect.fnUntraced(function* (
  runtime: Runtime,
  folder: string,
  place: { readonly nats: string; readonly token: string; readonly url: string },
  over: "http" | "nats"
) {
  const prefix = `s${stories++}`
  let isWell = false
  const hook = yield* receiver({
    answer: ({ path }) => {
      isWell ||= path === "/well"
      return { status: path === "/refused" && !isWell ? 503 : 200 }
    }
  })
  const given = {
    ...{ prefix, receiver: hook.url, tenant: "acme", token: place.token, url: place.url },
    ...(over === "nats" ? { nats: { url: place.nats, package: natsPackage } } : {})
  }
  const story = yield* Effect.promise(() =>
    runModule(runtime, folder, "program.js", JSON.stringify(given))
  )
  assertTold(story as Story, prefix)
}, Effect.scoped)

/** Writes the program into a folder. */
export const writeStory = async (folder: string): Promise<void> => {
  const source = await readFile(join(import.meta.dirname, "story.ts"), "utf8")
  await writeFile(join(folder, "story.js"), stripTypeScriptTypes(source))
  await writeFile(join(folder, "program.js"), program)
}
