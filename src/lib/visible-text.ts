/** Characters that are invisible or reorder the text around them, except U+200D and U+FE0F in emoji. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const WITHIN_EMOJI = /(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])[\u200d\ufe0f]/gu;

/** Reports whether a text has no invisible characters, so that two names that look alike are equal. */
export function isVisible(text: string): boolean {
  return !UNSEEN.test(text.replace(WITHIN_EMOJI, ''));
}

/** Error text for a name with invisible characters. */
export const NOT_VISIBLE = 'must not contain invisible characters';
