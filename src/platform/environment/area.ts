import type * as z from 'zod';
import type { PrivateHosts } from './private-hosts.js';

/** The mode that defaults and requirements depend on. */
export interface Mode {
  readonly production: boolean;
  /** None unless given. */
  readonly privateHosts?: PrivateHosts | undefined;
}

export interface VariableOptions {
  /** True if the docs mark the variable as secret. No variable's value is ever printed. */
  readonly secret?: boolean;
  /** The effect of leaving an optional variable unset, in the docs' words. */
  readonly whenUnset?: string;
}

/** An environment variable: how to parse and how to document it. */
export class Variable<T = unknown> {
  constructor(
    readonly name: string,
    /** The schema of the variable's text, which is undefined while the variable is unset. */
    readonly type: z.ZodType<T>,
    readonly description: string,
    readonly options: VariableOptions = {},
  ) {}
}

/** Declares a variable: plain `type` is required, `.optional()` may be unset, `.prefault('text')` defaults. */
export function variable<T>(...parameters: ConstructorParameters<typeof Variable<T>>): Variable<T> {
  return new Variable(...parameters);
}

/** Variables by the name of their value in the settings, optionally in groups. */
export interface Variables {
  readonly [key: string]: Variable | Variables;
}

/** The parsed values of variables. */
export type Values<V> = V extends Variable<infer T> ? T : { readonly [K in keyof V]: Values<V[K]> };

export interface Area<V extends Variables = Variables, S = unknown> {
  readonly title: string;
  variables(mode: Mode): V;
  /** Returns the area's settings: the values of its variables and everything derived from them. */
  settings(values: Values<V>, mode: Mode): S;
  /** Lists problems with combinations of variables, a sentence each, never with a value. */
  problems(values: Values<V>, mode: Mode): readonly string[];
}

export type SettingsOf<A> = A extends { settings(...parameters: never): infer S } ? S : never;

/** Declares an area's variables; `settings` adds values derived from several variables. */
export function area<V extends Variables, S = Values<V>>(
  title: string,
  variables: (mode: Mode) => V,
  // S differs from Values<V> only if `settings` is given, so the cast is safe.
  settings: (values: Values<V>, mode: Mode) => S = (values) => values as unknown as S,
  problems: Area<V, S>['problems'] = () => [],
): Area<V, S> {
  return { title, variables, settings, problems };
}

/** Returns the variables that an area reads, including those in groups. */
export function variablesOf(area: Area, mode: Mode): Variable[] {
  const flat = (variables: Variables): Variable[] =>
    Object.values(variables).flatMap((each) => (each instanceof Variable ? [each] : flat(each)));
  return flat(area.variables(mode));
}
