import type * as z from 'zod';

/** What defaults and demands depend on. */
export interface Mode {
  readonly production: boolean;
}

export interface VariableOptions {
  /** Whether the docs call it a secret. No variable's value is ever printed. */
  readonly secret?: boolean;
  /** What an optional variable's absence means, in the docs' words. */
  readonly otherwise?: string;
}

/** One variable of the environment, as it is read and as the docs show it. */
export class Variable<T = unknown> {
  constructor(
    readonly name: string,
    /** Of the variable's text; undefined where it is not set. */
    readonly type: z.ZodType<T>,
    readonly meaning: string,
    readonly options: VariableOptions = {},
  ) {}
}

/**
 * A variable of the environment: `type` is required as it stands, `type.optional()` may be missing,
 * and `type.prefault('text')` has a default, written as the variable would be.
 */
export function variable<T>(...parameters: ConstructorParameters<typeof Variable<T>>): Variable<T> {
  return new Variable(...parameters);
}

/** Variables by the name that their value has in the settings, in groups where that helps. */
export interface Variables {
  readonly [key: string]: Variable | Variables;
}

/** What the variables are read as. */
export type Values<V> = V extends Variable<infer T> ? T : { readonly [K in keyof V]: Values<V[K]> };

/** What one area of the product reads from its environment. */
export interface Area<V extends Variables = Variables, S = unknown> {
  readonly title: string;
  variables(mode: Mode): V;
  /** The area's settings: its variables' values, and what follows from them. */
  settings(values: Values<V>, mode: Mode): S;
  /** What is wrong with several variables together, a sentence each. Never holds a value. */
  problems(values: Values<V>, mode: Mode): readonly string[];
}

/** The settings of an area. */
export type SettingsOf<A> = A extends { settings(...parameters: never): infer S } ? S : never;

/** Declares what an area reads; `settings` adds what follows from several variables. */
export function area<V extends Variables, S = Values<V>>(
  title: string,
  variables: (mode: Mode) => V,
  // Without it, nobody names another S.
  settings: (values: Values<V>, mode: Mode) => S = (values) => values as unknown as S,
  problems: Area<V, S>['problems'] = () => [],
): Area<V, S> {
  return { title, variables, settings, problems };
}
