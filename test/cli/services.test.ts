import { readdir, readFile } from "node:fs/promises"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { helpOf } from "./help.ts"

const folder = new URL("../../deploy/", import.meta.url)
const read = (name: string) => Effect.promise(() => readFile(new URL(name, folder), "utf8"))

/** Matches the lines of a service that start Petrel: its command, and what follows it. */
const starts = /^Exec\w+=\S+\/node \S+\/main\.ts (\w+)(.*)$/gm

const flagsIn = (text: string): ReadonlyArray<string> => text.match(/--[a-z][a-z-]*/g) ?? []

describe("the services of deploy/", () => {
  it.live("start commands that there are, with flags that they have", () =>
    Effect.gen(function* () {
      const files = yield* Effect.promise(() => readdir(folder))
      const services = yield* Effect.forEach(
        files.filter((file) => file.endsWith(".service")),
        read
      )
      const paragraphs = (yield* read("petrel.env")).split("\n\n")
      const started: Array<string> = []
      for (const [, command = "", rest = ""] of services.join("\n").matchAll(starts)) {
        const variable = /\$(\w+)$/.exec(rest)?.[1]
        const about = paragraphs.find((text) => text.includes(`\n${variable}=`)) ?? ""
        assert.include(about, `petrel ${command}`)
        const help = (yield* helpOf([command])).join("\n")
        for (const flag of flagsIn(`${rest} ${about}`)) assert.include(help, flag, command)
        started.push(`${command} ${flagsIn(rest).join(" ")}`.trim())
      }
      assert.sameMembers(started, ["audit --watch", "console --data", "init", "worker"])
    })
  )
})
