import { Schema } from "effect"

/** A problem or notice, with what to do about it. */
export const News = Schema.Struct({
  /** A stable code for programs. */
  code: Schema.String,
  text: Schema.String
})
export type News = typeof News.Type

/** What is to be said of an installation. */
export const AllNews = Schema.Struct({
  /** Work has stopped or is about to stop until an operator acts. */
  problems: Schema.Array(News),
  /** Notable states, and states that pass without action. */
  notices: Schema.Array(News)
})
export type AllNews = typeof AllNews.Type

/** Returns one news item if the condition holds, or else none. */
export const newsIf = (condition: boolean, code: string, text: string): ReadonlyArray<News> =>
  condition ? [{ code, text }] : []
