import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { getEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { endpointCommand } from "../../ui/command-line.ts"
import { endpointFields } from "../../ui/generated/forms.ts"
import { run } from "../cli/in-process.ts"
import { browser, hasBrowser } from "../kit/browser.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint, type Installation, nth, worker } from "../kit/engine.ts"
import { faults, logIn, openPage, operatorPath, pagesConsole, portalPath } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

/** One change for each setting that a command can make, and what takes some of them back. */
const changes: ReadonlyArray<Record<string, unknown>> = [
  {
    ...{ url: "https://example.com/it's?a=b&c=$d", types: ["a.*", "b.>"], sign: "stripe" },
    ...{ signatureHeader: "x-sign", headerNames: { id: "x-id", timestamp: "x-at" } },
    ...{ retry: "stripe", retryFor: { "a.*": "github" }, maxInFlight: 7, adapt: true },
    ...{ rate: "5/s burst 9", circuit: { failures: 3, coolDown: "1 minute" } },
    ...{ timeout: "20 seconds", connectTimeout: "2 seconds", redirects: 2 },
    ...{ redirectsTo: ["https://eu.example.com"], headers: { "x-key": "of value" } },
    ...{ forwardHeaders: { "x-correlation-id": true }, contact: "Ada & Bob <ada@example.com>" },
    ...{ description: "what it's for", metadata: { customer: "42", "a.b": "c=d" } },
    alerts: { successWarnPercent: 98 }
  },
  {
    ...{ adapt: false, rate: null, timeout: null, connectTimeout: null, redirectsTo: null },
    ...{ headers: { "x-key": null }, forwardHeaders: { "x-correlation-id": null } },
    ...{ metadata: { "a.b": null }, contact: null, description: null, circuit: {} },
    ...{ retryFor: { "a.*": null }, alerts: "off" }
  }
]

const flagsOf = ({ eventRoot, prefix, url }: Installation): ReadonlyArray<string> => [
  ...["--nats", url, "--prefix", prefix],
  ...["--events", eventRoot]
]

/** The words of a command, as a shell reads them. */
const wordsOf = (command: string): ReadonlyArray<string> =>
  execFileSync("sh", ["-c", `printf '%s\\0' ${command}`])
    .toString()
    .split("\0")
    .slice(1, -1)

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "petrel-command-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

describe("the command that a page shows for a change", () => {
  scenario("makes the change that the page makes", (place) =>
    Effect.gen(function* () {
      yield* endpoint({ id: "page" })
      yield* endpoint({ id: "command" })
      const console = yield* startConsole()
      const token = yield* console.token()
      const file = join(yield* directory, "headers")
      writeFileSync(file, "x-key: of value\n")
      for (const change of changes) {
        const asked = yield* console.ask("/v1/tenants/acme/endpoints/page", {
          ...{ method: "PATCH", token, body: change }
        })
        assert.strictEqual(asked.status, 200, asked.text)
        const command = endpointCommand("set", "acme/command", endpointFields, change)
        const words = wordsOf(command.replace("FILE", file))
        const typed = yield* run(...words, ...flagsOf(place))
        assert.strictEqual(typed.code, 0, `${command}: ${typed.err.join("\n")}`)
        const of = (id: string) =>
          Effect.map(getEndpoint("acme", id), ({ endpoint }) => {
            const { generation: _, createdAt, id: __, secrets, updatedAt, ...settings } = endpoint
            return settings
          })
        assert.deepStrictEqual(yield* of("command"), yield* of("page"))
      }
      // Whoever adds a setting adds it here.
      const named = new Set(changes.flatMap((one) => Object.keys(one)))
      assert.deepStrictEqual(
        endpointFields.map(({ name }) => name).filter((name) => !named.has(name)),
        ["format", "operational", "secret"]
      )
    })
  )
})

const field = (page: Page, path: string) => page.locator(`[id="${path}"]`)

describe.skipIf(!hasBrowser)("the settings of an endpoint, in a browser", () => {
  scenario("are made, changed, refused at their fields, and removed", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({})
      yield* worker()
      const console = yield* pagesConsole(place)
      const operator = yield* operatorPath()
      const started = yield* browser
      yield* Effect.promise(async () => {
        const watched = await openPage(started, console.url)
        const { page, wrong } = watched
        await logIn(watched, console.url, operator)
        // Before it has a tenant, too.
        await page.goto(`${console.url}/ui/endpoints/new`)
        await page.locator('option[value="stripe"]').first().waitFor({ state: "attached" })
        await page.goto(`${console.url}/ui/endpoints?tenant=acme`)
        await page.getByRole("link", { name: "New endpoint" }).click()
        // By the keyboard alone.
        await field(page, "id").focus()
        await page.keyboard.type("billing")
        await page.keyboard.press("Tab")
        await page.keyboard.type("ftp://example.com")
        await page.keyboard.press("Tab")
        await page.keyboard.type("paid, refunded")
        await page.keyboard.press("Enter")
        await page.locator("#url-says").getByText("must be an http or https URL").waitFor()
        assert.strictEqual(await field(page, "url").getAttribute("aria-invalid"), "true")
        wrong.push(...(await faults(page, ["dark"])))
        await field(page, "url").fill(hook.url)
        await page
          .getByText(`petrel endpoint add acme/billing --url ${hook.url} --types paid,refunded`)
          .waitFor()
        await page.getByRole("button", { name: "Add it" }).click()
        await page.getByText("it is not shown again").waitFor()
        assert.match(await page.locator(".once code").innerText(), /^whsec_/)
        wrong.push(...(await faults(page, ["light"])))
        await page.goto(`${console.url}/ui/endpoints/new?tenant=acme`)
        await field(page, "id").fill("billing")
        await field(page, "url").fill(hook.url)
        await page.getByRole("button", { name: "Add it" }).click()
        await page.getByText("There is an endpoint acme/billing already").waitFor()
        // What is refused leaves the focus where it was.
        const hasFocus = (name: string) =>
          page.getByRole("button", { name }).evaluate((one) => one.matches(":focus"))
        assert.isTrue(await hasFocus("Add it"))

        await page.goto(`${console.url}/ui/endpoints/acme/billing`)
        await page.getByRole("button", { name: "Send a test event" }).click()
        await page.getByText("delivered: 200").waitFor()
        await page.getByRole("link", { name: "Change" }).click()
        await field(page, "maxInFlight").fill("5000")
        await page.getByRole("button", { name: "Save" }).click()
        await page.locator("#maxInFlight-says").getByRole("alert").waitFor()
        assert.isTrue(await hasFocus("Save"))
        await field(page, "maxInFlight").fill("50")
        await page.getByText("More settings").click()
        await field(page, "metadata").fill("customer=42")
        await page.getByText("circuit", { exact: true }).click()
        await field(page, "circuit.failures").fill("7")
        wrong.push(...(await faults(page)))
        await page.getByRole("button", { name: "Save" }).click()
        await page.getByText("Saved: ").waitFor()
        // What is saved has a page with a name, and the keyboard goes on there.
        await page.getByRole("heading", { level: 1, name: "acme/billing" }).waitFor()
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await page.getByText("customer=42").waitFor()
        await page.getByRole("button", { name: "Rotate the secret" }).click()
        await page.getByRole("dialog").getByRole("button", { name: "Rotate the secret" }).click()
        await page.locator(".once code").getByText("whsec_").waitFor()
        wrong.push(...(await faults(page, ["dark"])))
        await page.getByRole("button", { name: "Remove" }).click()
        await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click()
        await page.getByRole("button", { name: "Remove" }).click()
        await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click()
        await page.getByText("There is no endpoint yet").waitFor()
        assert.deepStrictEqual(wrong, [])
      })
    })
  )

  scenario("that two people change at once are those of both, and say who was first", (place) =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing", maxInFlight: 10 })
      const console = yield* pagesConsole(place)
      const operators = yield* Effect.all([operatorPath("Ada"), operatorPath("Bob")])
      const started = yield* browser
      yield* Effect.promise(async () => {
        const people = await Promise.all(
          operators.map(async (path) => {
            const one = await openPage(started, console.url)
            await logIn(one, console.url, path)
            await one.page.goto(`${console.url}/ui/endpoints/acme/billing/settings`)
            await field(one.page, "maxInFlight").waitFor()
            return one.page
          })
        )
        const [first, second] = [nth(people, 0), nth(people, 1)]
        await field(first, "maxInFlight").fill("20")
        await field(first, "description").fill("of the first")
        await field(second, "maxInFlight").fill("30")
        await field(second, "rate").fill("5/s")
        await first.getByRole("button", { name: "Save" }).click()
        await first.getByText("Saved: ").waitFor()
        await second.getByRole("button", { name: "Save" }).click()
        await second.getByText("Not saved: it was changed since you opened it").waitFor()
        await second.getByText(/maxInFlight 10 → 20/).waitFor()
        await second
          .locator("#maxInFlight-says")
          .getByText(/has set 20/)
          .waitFor()
        // What was typed is there; what was left as it was is as the other has it.
        assert.strictEqual(await field(second, "maxInFlight").inputValue(), "30")
        assert.strictEqual(await field(second, "description").inputValue(), "of the first")
        assert.deepStrictEqual(await faults(second, ["light"]), [])
        await second.getByRole("button", { name: "Save" }).click()
        await second.getByText(/^Saved: /).waitFor()
      })
      const { endpoint: after } = yield* getEndpoint("acme", "billing")
      assert.deepInclude(after, {
        ...{ maxInFlight: 30, description: "of the first" },
        rate: { perSecond: 5, burst: 1 }
      })
    })
  )

  scenario("are the owner's in a portal, and the endpoint is not theirs to remove", (place) =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing" })
      const console = yield* pagesConsole(place)
      const [owner, reader] = yield* Effect.all([
        portalPath("acme", { endpoint: "billing" }),
        portalPath("acme", { endpoint: "billing", readOnly: true })
      ])
      const started = yield* browser
      yield* Effect.promise(async () => {
        const one = await openPage(started, console.url)
        await logIn(one, console.url, owner)
        // It begins at the endpoint, and says so: it has no overview.
        await one.page.locator('nav [aria-current="page"]', { hasText: "Endpoints" }).waitFor()
        assert.strictEqual(await one.page.title(), "billing · Petrel")
        assert.strictEqual(await one.page.getByRole("button", { name: "Remove" }).count(), 0)
        // Whoever has no login at the broker is shown no command that needs one.
        assert.strictEqual(await one.page.getByText("petrel endpoint").count(), 0)
        await one.page.getByRole("link", { name: "Change" }).click()
        await field(one.page, "description").fill("mine")
        await one.page.getByText("curl -X PATCH").waitFor()
        await one.page.getByRole("button", { name: "Save" }).click()
        await one.page.getByText("Saved: description").waitFor()
        const other = await openPage(started, console.url)
        await logIn(other, console.url, reader)
        await other.page.getByText("mine").waitFor()
        assert.strictEqual(await other.page.getByRole("link", { name: "Change" }).count(), 0)
        assert.strictEqual(await other.page.getByRole("button", { name: "Pause" }).count(), 0)
      })
    })
  )
})
