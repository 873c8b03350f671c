import { isObject } from '../../../lib/json.js';
import type { ChatRequest } from '../../completion/completion.js';
import { sentName } from '../shared/tool-calls.js';

/** Characters that Gemini refuses in the name of a function, and the place before a name that begins with none. */
export const REFUSED_IN_NAMES = /[^\w.:-]|^(?=[\d.:-])/g;

/** Returns a tool's name as Gemini accepts it. */
export const geminiName = (name: string): string => sentName(name, REFUSED_IN_NAMES);

/** Returns the name by which the client declared a tool that Gemini calls. */
export function declaredName(name: string, { tools }: ChatRequest): string {
  if (!Array.isArray(tools)) return name;
  const names = tools.flatMap((tool: unknown): string[] => {
    const declared = isObject(tool) && isObject(tool.function) ? tool.function.name : undefined;
    return typeof declared === 'string' ? [declared] : [];
  });
  if (names.includes(name)) return name;
  return names.find((each) => geminiName(each) === name) ?? name;
}
