// Search of the pages: words by their beginning, by their stem, and by synonyms.

const ENDINGS = ["ings", "ing", "ers", "ies", "ed", "er", "es", "s", "e", "y"];

/** Return a word without its ending, so that "tune", "tuned" and "tuning" are equal. */
function stem(word) {
  const american = word.replace(/is(?=(?:e|es|ed|er|ers|ing|ation|ations)$)/, "iz").replace(/ations?$/, "ate").replace(/izate$/, "ize");
  const ending = ENDINGS.find((each) => american.endsWith(each) && american.length - each.length >= 3);
  return american.slice(0, american.length - (ending ?? "").length).replace(/([^aeiouls])\1$/, "$1");
}

/** Return the words of a query, each with other words for the same; names also in their parts. */
function readQuery(query, synonyms) {
  const words = query.toLowerCase().match(/[\p{L}\p{N}_]+(?:[.-][\p{L}\p{N}_]+)*/gu) ?? [];
  const parts = words.flatMap((word) => word.split(/[.-]/));
  const terms = [];
  for (let i = 0; i < parts.length; ) {
    const rest = parts.slice(i).join(" ");
    const phrase = Object.keys(synonyms).filter((key) => `${rest} `.startsWith(`${key} `)).sort((a, b) => b.length - a.length)[0];
    if (phrase) terms.push(phrase.includes(" ") ? synonyms[phrase] : [phrase, ...synonyms[phrase]]);
    else if (parts[i].length > 1) terms.push([parts[i]]);
    i += phrase ? phrase.split(" ").length : 1;
  }
  return { terms, names: words.filter((word) => /[.-]/.test(word)) };
}

/** Return the weight of each page for a term: 3 for the word, 2 for its stem, 1 for its beginning. */
function weigh(alternatives, words) {
  const weights = new Map();
  for (const term of alternatives) {
    const stemmed = stem(term);
    for (const [word, pages] of Object.entries(words)) {
      const factor = word === term ? 3 : word[0] === term[0] && stem(word) === stemmed ? 2 : word.startsWith(term) ? 1 : 0;
      if (!factor) continue;
      for (let i = 0; i < pages.length; i += 2) {
        weights.set(pages[i], Math.max(factor * pages[i + 1], weights.get(pages[i]) ?? 0));
      }
    }
  }
  return weights;
}

/** Return the numbers of the pages with words of a query, those with all or heavy ones first. */
function searchPages({ pages, words, synonyms }, query) {
  const { terms, names } = readQuery(query, synonyms);
  const counts = new Map();
  const scores = new Map();
  for (const term of terms) {
    for (const [page, weight] of weigh(term, words)) {
      counts.set(page, (counts.get(page) ?? 0) + 1);
      scores.set(page, (scores.get(page) ?? 0) + weight);
    }
  }
  for (const name of names) {
    for (let i = 0; i < (words[name] ?? []).length; i += 2) {
      scores.set(words[name][i], scores.get(words[name][i]) + 3 * words[name][i + 1]);
    }
  }
  const title = query.trim().toLowerCase();
  const score = (page) => (pages[page][1].toLowerCase() === title ? Infinity : scores.get(page) * (counts.get(page) / terms.length) ** 2);
  return [...counts.keys()].sort((a, b) => (score(a) === score(b) ? a - b : score(b) - score(a)));
}

if (typeof module !== "undefined") module.exports = { searchPages, stem };
