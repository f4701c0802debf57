import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import { faults, openPage, operatorPath, pagesConsole } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 240_000 })

const { scenario } = onServer()

interface Focused {
  readonly tag: string
  readonly name: string
  readonly isShown: boolean
}

/** What has the focus, and whether somebody who looks sees that. */
const focused = (page: Page): Promise<Focused> =>
  page.evaluate(`(() => {
    const at = document.activeElement
    const { outlineStyle, outlineWidth } = getComputedStyle(at)
    const box = at.getBoundingClientRect()
    const isIn = box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth
    const isMarked = outlineStyle !== "none" && parseFloat(outlineWidth) > 0
    const label = at.labels?.[0]?.textContent ?? at.getAttribute("aria-label") ?? at.textContent
    return { tag: at.localName, name: label.trim().replace(/\\s+/g, " "), isShown: isIn && isMarked }
  })()`)

/** Goes on by Tab to what has a name, and finds the focus visible at each step. */
const tabTo = async (page: Page, tag: string, name: RegExp): Promise<void> => {
  const passed: Array<string> = []
  for (let n = 0; n < 80; n++) {
    await page.keyboard.press("Tab")
    const now = await focused(page)
    if (now.tag === "body") continue
    passed.push(`${now.tag} ${now.name}`)
    assert.isTrue(now.isShown, `nobody sees that ${now.tag} "${now.name}" has the focus`)
    if (now.tag === tag && name.test(now.name)) return
  }
  assert.fail(`no Tab leads to ${tag} ${name}: ${passed.join(", ")}`)
}

describe.skipIf(!hasBrowser)("a console without a mouse", () => {
  scenario("is logged in to, filtered, read, and sends a dead letter again", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 400 } })
      for (const [id, type] of [
        ["billing", "paid"],
        ["stock", "shipped"]
      ] as const)
        yield* endpoint({
          ...{ id, url: hook.url, types: [type] },
          circuit: { permanentFailures: 1_000 }
        })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.one" })
      yield* publish("shipped", "{}", { "Nats-Msg-Id": "acme.two" })
      yield* facts.count("dead-lettered", 2)
      const console = yield* pagesConsole(place)
      const secret = (yield* operatorPath("Ada")).split("#")[1] ?? ""
      const started = yield* browser
      yield* Effect.promise(async () => {
        const { page, wrong } = await openPage(started, console.url)
        await page.addInitScript(
          `globalThis.pointed = 0; for (const name of ["mousedown", "pointerdown", "touchstart"]) addEventListener(name, () => pointed++, true)`
        )
        const keys = page.keyboard
        await page.goto(`${console.url}/ui/login`)
        await page.getByRole("button", { name: "Log in" }).waitFor()
        await tabTo(page, "input", /^Token/)
        await keys.type(secret)
        await keys.press("Enter")
        await page.getByRole("heading", { name: "Overview" }).waitFor()

        // Help is a key away, and so is the way back to where one was.
        await keys.press("?")
        await page.getByRole("dialog", { name: "Keys" }).waitFor()
        assert.isTrue((await focused(page)).isShown)
        await keys.press("Escape")
        await page.getByRole("dialog").waitFor({ state: "detached" })

        // The first Tab stop skips the links.
        await page.reload()
        await page.getByRole("heading", { name: "Overview" }).waitFor()
        await tabTo(page, "a", /^Skip to the page$/)
        await keys.press("Enter")
        assert.strictEqual((await focused(page)).tag, "main")

        await keys.press("g")
        await keys.press("x")
        await page.getByRole("link", { name: "acme.two" }).waitFor()
        await tabTo(page, "input", /^type/)
        await keys.type("paid")
        await keys.press("Enter")
        await page.getByRole("link", { name: "acme.two" }).waitFor({ state: "detached" })
        assert.include(page.url(), "type=paid")
        await tabTo(page, "select", /^reason/)
        await keys.type("permanent")
        await page.waitForURL(/reason=permanent/)
        assert.isTrue((await focused(page)).isShown, "a filter that was used has no focus")
        await page.getByRole("link", { name: "acme.one" }).waitFor()
        wrong.push(...(await faults(page)))

        await keys.press("Tab")
        await tabTo(page, "button", /^What would be sent again/)
        await keys.press("Enter")
        await page.getByText("1 of 1 dead letters would be sent again").waitFor()
        assert.isTrue((await focused(page)).isShown, "a button that was pressed has no focus")
        hook.answer({ status: 200 })
        await tabTo(page, "button", /^Send 1 again$/)
        await keys.press("Enter")
        await page.getByRole("status").getByText("1 of 1 are done").waitFor()

        // From a row to its delivery, which is sent once more after a question.
        await keys.press("g")
        await keys.press("d")
        await page.getByRole("link", { name: "acme.one" }).first().waitFor()
        await keys.press("j")
        await keys.press("j")
        await keys.press("k")
        const row = await focused(page)
        assert.isTrue(row.isShown)
        await keys.press("Enter")
        await page.getByText("Routed").first().waitFor()
        assert.include(page.url(), row.name)
        await tabTo(page, "button", /^Send again$/)
        await keys.press("Enter")
        await page.getByRole("dialog").waitFor()
        await keys.press("Escape")
        await page.getByRole("dialog").waitFor({ state: "detached" })
        const back = await focused(page)
        assert.deepStrictEqual([back.name, back.isShown], ["Send again", true])
        await keys.press("Enter")
        await page.getByRole("dialog").waitFor()
        await tabTo(page, "button", /^Send again$/)
        await keys.press("Enter")
        await page.getByText("it is sent again").waitFor()
        wrong.push(...(await faults(page)))

        await keys.press("/")
        const search = await focused(page)
        assert.deepStrictEqual([search.tag, search.isShown], ["input", true])
        await keys.type("g")
        await keys.press("Escape")
        assert.notStrictEqual((await focused(page)).tag, "input")
        await keys.press("/")
        await keys.press("ControlOrMeta+a")
        await keys.type("acme.two")
        await keys.press("Enter")
        await page.waitForURL(/event=acme\.two/)
        await page.getByRole("cell", { name: "acme.two" }).waitFor()
        assert.strictEqual(await page.evaluate("pointed"), 0)
        assert.deepStrictEqual(wrong, [])
      })
      yield* facts.count("redelivered", 1)
      yield* hook.received(4)
    })
  )
})
