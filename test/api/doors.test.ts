import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { RefusalCells } from "../../src/metrics/refused-requests.ts"

const root = join(import.meta.dirname, "../..")
const read = (path: string) => readFileSync(join(root, path), "utf8")

const [, table = ""] =
  /### Attacks and what stops them\n(.*?)\n## /s.exec(read("docs/reference/api.md")) ?? []
const rows = table.split("\n").filter((line) => /^\| (?!attack|---)/.test(line))
const quoted = (text: string): ReadonlyArray<string> =>
  Array.from(text.matchAll(/`([^`]+)`/g), ([, inside = ""]) => inside)

describe("the table of doors in docs/reference/api.md", () => {
  it("has a row for each of the 19 points", () => {
    const numbers = new Set(rows.map((row) => Number(/^\| (\d+)\./.exec(row)?.[1])))
    for (let number = 1; number <= 19; number++) assert.isTrue(numbers.has(number), `${number}`)
  })

  it("names bounds as they are, in files and tests that are there", () => {
    const wrong: Array<string> = []
    for (const row of rows) {
      const [, , bounds = "", , tests = ""] = row.split("|")
      // In the text a bound is before the file that it is in.
      let names: Array<string> = []
      for (const one of quoted(bounds)) {
        if (!/^(?:src\/|nats\.conf)/.test(one)) names.push(one)
        else if (!existsSync(join(root, one))) wrong.push(one)
        else {
          for (const name of names) if (!read(one).includes(name)) wrong.push(`${name} in ${one}`)
          names = []
        }
      }
      wrong.push(...names)
      for (const one of quoted(tests)) if (!existsSync(join(root, one))) wrong.push(one)
      assert.isNotEmpty(quoted(tests), row)
    }
    assert.deepStrictEqual(wrong, [])
  })

  it("names metrics that are there, and every bound by which a console refuses", () => {
    const metrics = read("docs/operate/metrics.md")
    const named = rows.flatMap((row) => quoted(row.split("|")[3] ?? ""))
    const bounds = new RefusalCells().family().samples.map(({ labels }) => labels.bound)
    for (const name of named) {
      const [, bound] = /^bound="(.*)"$/.exec(name) ?? []
      if (bound === undefined) assert.include(metrics, `\`${name}\``)
      else assert.include(bounds, bound)
    }
    assert.deepStrictEqual(
      bounds.filter((bound) => !named.includes(`bound="${bound}"`)),
      []
    )
  })
})
