import { access, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { revisionOf } from "../../build/revision.ts"
import { httpClient } from "../../src/client/client.ts"
import * as receiverModule from "../../src/receiver/index.ts"
import { installations, parse } from "../cli/command-line.ts"
import { run } from "../cli/in-process.ts"
import { tellInstalled, writeStory } from "../client/told.ts"
import { endpoint, eventually, history, nth, publish } from "../kit/engine.ts"
import { exec, npm, packaged } from "../kit/packaged.ts"
import { receiver } from "../kit/receiver.ts"
import { runModule, thisNode } from "../kit/runtimes.ts"
import { exportedProviders, verified, verifyingProgram } from "../providers/installed.ts"
import { receivedOnce, receiveInstalled } from "../receiver/installed.ts"

const place = installations()
const { path, run: runPackaged, start: startPackaged, startDev } = packaged()

/** Where the packages of the NATS client are. */
const natsScope = join(import.meta.dirname, "../../node_modules/@nats-io")

/** A program that is compiled, and not run. */
const typedProgram = `import { httpClient, isProblem, type DeliveryList, type List } from "petrel/client"
import { enqueue, type Transaction } from "petrel/outbox"
const petrel = httpClient({ url: "https://petrel.example.com", fetch, token: async () => "ptl_" })
export const list: List<DeliveryList["deliveries"][number], DeliveryList> = petrel.log.list({ status: "5xx" })
export const states = async (signal: AbortSignal): Promise<string[]> => {
  const found: string[] = []
  for await (const { state } of petrel.log.list({ since: new Date() }, { signal })) found.push(state)
  return found
}
export const code = (error: unknown): "not-found" | "conflict" | undefined =>
  isProblem(error, "not-found", "conflict") ? error.code : undefined
export const planned = async (): Promise<number> =>
  (await petrel.jobs.redeliver({ endpoint: "a", dryRun: true })).selected
export const begun = async (): Promise<string> => (await petrel.jobs.redeliver({ endpoint: "a" })).state
export const queued = (tx: Transaction): Promise<string> =>
  enqueue(tx, { tenant: "acme", type: "invoice.paid", body: { total: "10.00" } })
// @ts-expect-error an endpoint needs a URL
export const wrong = petrel.endpoints.put({ id: "a" })
// @ts-expect-error a tenant is a string
export const alsoWrong = (tx: Transaction) => enqueue(tx, { tenant: 1, type: "a", body: "" })
`

/** Another one, for Node alone. */
const typedReceiver = `import { createServer } from "node:http"
import { memoryStore, PermanentError, petrel, receiver, stripe, type InboxEvent } from "petrel/receiver"
const hooks = receiver({
  store: memoryStore(),
  sources: { petrel: petrel({ secrets: ["whsec_"] }), stripe: { provider: stripe({ secrets: ["whsec_"] }), key: "payload" } },
  subject: ({ data }) => data.customer
})
hooks.once("invoice.*", (_tx: undefined, event: InboxEvent) => {
  if (event.data.total === undefined) throw new PermanentError("it has no total")
})
hooks.process("*", async () => undefined, { attempts: 3 })
createServer(hooks.node("petrel"))
export const rate = async (): Promise<number | undefined> => (await hooks.stats({ source: "stripe" })).successRate
// @ts-expect-error a receiver needs a store
receiver({ sources: {} })
// @ts-expect-error there is no such key
receiver({ store: memoryStore(), sources: {}, key: "name" })
`

/** Another one, which verifies by itself. */
const typedProviders = `import { provider, providers, stripe, type Reading, type ReceivedRequest } from "petrel/providers"
const one = stripe({ secrets: ["whsec_"] })
export const read = async (request: ReceivedRequest): Promise<Reading | string> => {
  const found = await one.verify(request, Date.now())
  return found.ok ? one.read(request) : found.text
}
export const missing: readonly string[] = providers.get("twilio")?.problems({ secrets: ["x"] }) ?? []
export const named: string = provider("github", { secrets: ["x"] }).name
// @ts-expect-error there are no secrets
export const wrong = stripe({})
`

/** Fails unless `petrel dev` has printed a link that logs in, and serves the pages with their files. */
const servesPages = ({ out, url }: { readonly out: ReadonlyArray<string>; readonly url: string }) =>
  Effect.promise(async () => {
    assert.match(out.join("\n"), /http:\/\/\S+\/ui\/login#ptl_\S+/)
    const page = await fetch(`${url}/ui/`).then((answer) => answer.text())
    const names = [...page.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/g)]
    const asked = await Promise.all(
      names.map(async ([, name = ""]) => {
        const answer = await fetch(new URL(name, `${url}/ui/`))
        return [answer.status, answer.headers.get("content-type")?.split(";")[0]]
      })
    )
    assert.sameDeepMembers(asked, [
      [200, "text/javascript"],
      [200, "text/css"]
    ])
    const docs = await fetch(`${url}/docs`)
    assert.deepStrictEqual(
      [docs.status, docs.headers.get("content-type")],
      [200, "text/html; charset=utf-8"]
    )
    assert.include(await docs.text(), "SwaggerUIBundle({")
  })

describe("the package that npm run build makes", () => {
  it("is packed and installed in a project and globally, from nothing else", async () => {
    const [file = ""] = await readdir(path("packed"))
    assert.isBelow((await stat(path("packed", file))).size, 4 * 1024 * 1024)
    const project = path("project")
    assert.deepStrictEqual(
      (await readdir(join(project, "node_modules"))).filter((name) => !name.startsWith(".")),
      ["petrel"]
    )
    const { version } = JSON.parse(await readFile(path("petrel/package.json"), "utf8"))
    const revision = revisionOf(import.meta.dirname)
    const expected = `petrel ${version}${revision === undefined ? "" : ` (${revision})`}\n`
    for (const command of [join(project, "node_modules/.bin/petrel"), path("global/bin/petrel")]) {
      const { stderr, stdout } = await exec(process.execPath, [command, "--version"], {
        cwd: project
      })
      assert.deepStrictEqual([stdout, stderr], [expected, ""])
    }
    // Where `man petrel` finds it.
    await access(path("global/share/man/man1/petrel.1"))
  })

  it("can be published, with the pages that its README leads to and a manual", async () => {
    const packed = path("petrel")
    const [file = ""] = await readdir(path("packed"))
    assert.match(
      await npm(path("packed"), "publish", file, "--dry-run"),
      /^\+ petrel@\d+\.\d+\.\d+$/m
    )
    const readme = await readFile(join(packed, "README.md"), "utf8")
    const links = Array.from(readme.matchAll(/\]\((?!https:)([^)#]+)/g), ([, link = ""]) => link)
    assert.isAbove(links.length, 20)
    for (const link of links) await access(join(packed, link))
    const manual = await readFile(join(packed, "man/petrel.1"), "utf8")
    assert.match(manual, /^petrel \\- deliver webhooks/m)
    assert.match(manual, /^\.SS petrel endpoint retry\\-now$/m)
    const made = JSON.parse(await readFile(join(packed, "package.json"), "utf8"))
    assert.doesNotHaveAnyKeys(made, ["private", "dependencies", "scripts"])
    const { version } = made
    const [, first = ""] = (await readFile(join(packed, "CHANGELOG.md"), "utf8")).split(/^## /m)
    assert.isTrue(first.startsWith(`${version} `), first.slice(0, 20))
  })

  it("passes on the licenses of what is bundled", async () => {
    const text = await readFile(path("petrel/THIRD-PARTY-LICENSES"), "utf8")
    for (const name of ["effect", "undici", "@nats-io/nats-core", "pino"])
      assert.match(text, new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(.+\\)$`, "m"))
  })

  it("is what the container's image has, without pages, tests and packages of npm", async () => {
    const script = join(import.meta.dirname, "../../deploy/containers/rootfs.sh")
    await exec("sh", [script, path("rootfs"), path("petrel")])
    const made = await readdir(path("rootfs/opt/petrel"))
    assert.includeMembers(made, ["cli", "healthcheck.mjs"])
    for (const none of ["docs", "deploy", "node_modules", "test"]) assert.notInclude(made, none)
    const { stdout } = await exec(process.execPath, [
      path("rootfs/usr/local/bin/petrel"),
      "--version"
    ])
    assert.match(stdout, /^petrel /)
  })

  it("has the OpenAPI document, so that no console has to make it", async () => {
    const file = path("global/lib/node_modules/petrel/cli/openapi.json")
    const described = await readFile(
      join(import.meta.dirname, "../../docs/reference/openapi.json"),
      "utf8"
    )
    assert.deepStrictEqual(JSON.parse(await readFile(file, "utf8")), JSON.parse(described))
    await writeFile(file, '{"openapi":"as it is there"}')
    const { stdout } = await exec(process.execPath, [path("global/bin/petrel"), "openapi"])
    assert.include(JSON.parse(stdout), { openapi: "as it is there" })
  })

  it("has the document's viewer as a file, and no console loads it as a module", async () => {
    const folder = path("petrel/cli")
    const page = await readFile(`${folder}/docs.html`, "utf8")
    assert.include(page, "SwaggerUIBundle({")
    assert.include(page, 'url: "openapi.json"')
    for (const name of await readdir(folder))
      if (name.endsWith(".js"))
        assert.notInclude(await readFile(`${folder}/${name}`, "utf8"), "SwaggerUIBundle", name)
  })

  it("lets programs import the client, the outbox, the receiver and the providers, and nothing else", async () => {
    const told = `const names = ["petrel/client", "petrel/outbox", "petrel/receiver", "petrel/providers", "petrel", "petrel/cli/petrel.js", "petrel/client/client.js"]
      const asked = names.map((name) => import(name).then(Object.keys, ({ code }) => code))
      console.log(JSON.stringify(await Promise.all(asked)))`
    await writeFile(path("project/imports.js"), told)
    const closed = "ERR_PACKAGE_PATH_NOT_EXPORTED"
    assert.deepStrictEqual(await runModule(thisNode, path("project"), "imports.js"), [
      ["JobFailed", "NoAnswer", "PetrelProblem", "httpClient", "isProblem", "natsClient"],
      ["enqueue", "enqueueAll", "maxBodyBytes"],
      Object.keys(receiverModule).sort(),
      exportedProviders,
      ...[closed, closed, closed]
    ])
    const client = await stat(path("petrel/client/client.js"))
    assert.isBelow(client.size, 48 * 1024)
    const outbox = await stat(path("petrel/outbox/outbox.js"))
    assert.isBelow(outbox.size, 12 * 1024)
    const providers = await stat(path("petrel/providers/providers.js"))
    assert.isBelow(providers.size, 80 * 1024)
    const kit = await stat(path("petrel/receiver/receiver.js"))
    assert.isBelow(kit.size, 192 * 1024)
    // It imports nothing but Node: the clients of databases are the program's own.
    const code = await readFile(path("petrel/receiver/receiver.js"), "utf8")
    const imported = Array.from(code.matchAll(/\bfrom "([^"]+)"/g), ([, name = ""]) => name)
    assert.isAbove(imported.length, 0)
    assert.deepStrictEqual(
      imported.filter((name) => !name.startsWith("node:")),
      []
    )
  })

  it("has types that compilers take with browsers' names, and with Node's", async () => {
    const repository = join(import.meta.dirname, "../..")
    const modules = join(repository, "node_modules")
    await writeFile(path("project/typed.ts"), typedProgram)
    await writeFile(path("project/typed-receiver.ts"), typedReceiver)
    await writeFile(path("project/typed-providers.ts"), typedProviders)
    const guide = await readFile(join(repository, "docs/guide/client.md"), "utf8")
    const examples = Array.from(guide.matchAll(/^```ts\n(.*?)^```$/gms), ([, code = ""], at) => ({
      ...{ file: at === 0 ? "petrel.ts" : `example-${at}.ts`, code }
    }))
    for (const { code, file } of examples) await writeFile(path("project", file), code)
    const options = {
      ...{ strict: true, exactOptionalPropertyTypes: true, noEmit: true, skipLibCheck: false },
      paths: { "@nats-io/*": [join(modules, "@nats-io/*")] }
    }
    const node = {
      ...{ module: "nodenext", lib: ["ES2022"], types: ["node"] },
      typeRoots: [join(modules, "@types")]
    }
    const worlds = [
      {
        world: { module: "esnext", moduleResolution: "bundler", lib: ["ES2022", "DOM"], types: [] },
        files: ["typed.ts"]
      },
      { world: node, files: ["typed.ts", "typed-receiver.ts", "typed-providers.ts"] },
      {
        world: { ...node, allowImportingTsExtensions: true },
        // The project has no transport for the one over NATS.
        files: examples.flatMap(({ code, file }) => (code.includes("@nats-io/") ? [] : [file]))
      }
    ]
    for (const { files, world } of worlds) {
      const config = { compilerOptions: { ...options, ...world }, files }
      await writeFile(path("project/tsconfig.json"), JSON.stringify(config))
      const { stdout } = await exec(
        process.execPath,
        [join(modules, "typescript/bin/tsc"), "-p", path("project")],
        { cwd: path("project") }
      ).catch((error: { stdout: string }) => error)
      assert.strictEqual(stdout, "")
    }
  })

  it("verifies webhooks in a program", async () => {
    await writeFile(path("project/verified.js"), verifyingProgram)
    const said = await runModule(thisNode, path("project"), "verified.js")
    assert.deepStrictEqual(said, verified)
  })

  it.live("prints the same help as the sources", () =>
    Effect.gen(function* () {
      const [packaged, written] = [yield* runPackaged(["--help"]), yield* run("--help")]
      assert.deepStrictEqual([packaged.code, packaged.err], [0, []])
      assert.deepStrictEqual(packaged.out, written.out)
    })
  )

  it.live("says in one sentence which Node it needs", () =>
    Effect.gen(function* () {
      const versions = `{ value: { ...process.versions, node: "20.20.2" } }`
      const pretend = `data:text/javascript,Object.defineProperty(process, "versions", ${versions})`
      const { code, err, out } = yield* runPackaged(["--help"], ["--import", pretend])
      assert.deepStrictEqual([code, out], [1, []])
      assert.deepStrictEqual(err, [
        "petrel: Node 22.19 or newer is needed, and this is 20.20.2: install one from https://nodejs.org"
      ])
    })
  )

  it("lets a program receive each webhook once", async () => {
    assert.deepStrictEqual(await receiveInstalled(thisNode, path("project")), receivedOnce)
  })

  it.live(
    "runs petrel dev with the console's pages, what the guide of the client shows, and a program over HTTP and over NATS",
    () =>
      Effect.gen(function* () {
        const page = yield* Effect.promise(() =>
          readFile(path("petrel/docs/guide/client.md"), "utf8")
        )
        const [setUp, ...snippets] = Array.from(
          page.matchAll(/^```ts\n(.*?)^```$/gms),
          ([, ts]) => ts
        )
        assert.lengthOf(snippets, 10)
        const dev = yield* startDev
        const hook = yield* receiver({
          answer: ({ path }) => ({ status: path === "/failing" ? 503 : 200 })
        })
        const petrel = httpClient({ ...dev, tenant: "acme" })
        yield* Effect.promise(() =>
          petrel.endpoints.put({ id: "failing", url: `${hook.url}/failing`, types: ["fails"] })
        )
        const here = (text: string) => text.replace("http://127.0.0.1:3000", hook.url)
        yield* Effect.promise(() => writeFile(path("project/petrel.ts"), setUp ?? ""))
        // Packages beside petrel are found from here.
        yield* Effect.promise(() => symlink(natsScope, path("project/node_modules/@nats-io")))
        for (const [index, text = ""] of snippets.entries()) {
          const expected = Array.from(
            text.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm),
            ([, said]) => said
          )
          const file = `snippet-${index}.ts`
          yield* Effect.promise(() => writeFile(path("project", file), here(text)))
          // What is to be seen has to happen.
          if (text.includes("log.list"))
            yield* eventually(
              Effect.promise(() => petrel.log.stats()),
              ({ whole }) => whole.attempts >= 2_001
            )
          const failing = text.includes("petrel.live(")
            ? setInterval(
                () => petrel.publish({ type: "fails", data: 1 }).catch(() => undefined),
                500
              )
            : undefined
          const { stdout } = yield* Effect.promise(() =>
            exec(process.execPath, [file], {
              cwd: path("project"),
              env: {
                ...process.env,
                PETREL_URL: dev.url,
                PETREL_TOKEN: dev.token,
                NATS_URL: dev.nats
              }
            })
          )
          clearInterval(failing)
          assert.deepStrictEqual(stdout.trimEnd().split("\n"), expected, text)
        }
        yield* Effect.promise(() => writeStory(path("project")))
        for (const over of ["http", "nats"] as const)
          yield* tellInstalled(thisNode, path("project"), dev, over)
        yield* servesPages(dev)
        yield* dev.signal("SIGINT")
        assert.strictEqual(yield* dev.ended, 0)
      }),
    300_000
  )

  it.live("runs a worker, a console with its threads, and an audit", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { url } = yield* receiver()
        yield* endpoint({ url })
        const facts = yield* history
        const worker = yield* startPackaged([
          ...["worker", "--allow-network", "127.0.0.0/8"],
          ...flags
        ])
        const console = yield* startPackaged([
          ...["console", "--listen", "127.0.0.1:0", "--data", "log", "--audit-since", "1 hour"],
          ...flags
        ])
        yield* worker.until((out) => out.length > 1)
        yield* publish("paid", "{}")
        yield* facts.count("delivered", 1)
        // Its threads: the log's writer and queries, and the audit.
        yield* console.until((_, err) => err.some((line) => line.includes("the audit continues")))
        const listed = yield* eventually(
          runPackaged(["events", "--json", ...flags]),
          ({ out }) => out.length > 0
        )
        assert.strictEqual(parse(nth(listed.out, 0)).type, "paid")
        const audited = yield* runPackaged(["audit", ...flags])
        assert.deepStrictEqual([audited.code, audited.err], [0, []])
        yield* console.signal("SIGTERM")
        yield* worker.signal("SIGTERM")
        assert.deepStrictEqual([yield* console.ended, yield* worker.ended], [0, 0])
        assert.notInclude(console.err.join("\n"), "has ended")
      })
    )
  })
})
