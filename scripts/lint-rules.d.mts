/** Words that no sentence begins with. */
export const EMPTY_START: RegExp;
