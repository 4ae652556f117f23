"""What attacks on an assistant are about, in some thirty languages: so that what was learnt of the
words for it in one of them holds in the others.

Beginnings of words stand for a concept; those of scripts without spaces at any place. "Forget",
"previous" and "rules" in one sentence mean more than each alone, however long the text is. What stands
in quotation marks is talked about, and counts as something else.
"""

import re
from collections.abc import Iterator
from itertools import combinations

_STEMS = {
    "ignore": """
        ignor disregard forget override overrul neglect discard bypass abandon dismiss erase cancel
        vergiss vergesst vergessen missacht übergeh verwirf oubli désobé abandonn néglig olvid desobede
        omit descart esquec esqueç desconsider trascur dimentic scord disobbed tralasci vergeet negeer
        strunta glöm ignorer glem unohda zignor zapomn pomiń pomin odrzuć zapomeň nevšímej ігнор забуд
        игнор забыть забудь отбрось отмен пренебре игнорирай забрави hagyd felejtsd uită zanemari
        αγνό αγνοή ξέχν ξέχασ ξεχάσ παράβλεψ παραβλέψ unut yoksay abaikan lupakan puuza kalimutan
        忽略 无视 無視 忘记 忘掉 忘了 忘れ 抛开 放弃 取消 不要理 别管 無効 무시 잊 따르지 취소
        تجاهل انس أهمل تغاض نادیده فراموش התעלם שכח अनदेखा भूल নज़रअंदाज উপেক্ষা புறக்கணி ลืม
        ไม่ต้องสนใจ
        """,
    "earlier": """
        previous prior above earlier before former preceding initial foregoing vorherig vorig bisherig
        obig früher oben vorher précédent antérieur dessus ci-dessus avant anterior previ arriba antes
        acima precedent sopra prima eerder voorgaand hierboven tidigare ovan tidligere ovenfor aiem
        poprzedni wcześniej powyż předchoz výše попередн предыдущ прежн ранее выше предишн előző
        korábbi
        anterio precedente prethodn gornje προηγούμεν παραπάνω πρώην önceki yukarıdaki sebelum
        terdahulu
        awali nauna trước 之前 先前 以前 上面 以上 前面 此前 前の これまで 上記 以前の 이전 앞의
        위의 지금까지
        السابق قبل أعلاه قبلی بالا הקודמ למעלה पिछल पहले ऊपर আগের முந்தைய ก่อนหน้า
        """,
    "rules": """
        instruction direction prompt rule guideline order command directive constraint guidance polic
        anweisung regel vorgab richtlinie auftrag befehl hinweis aufgabe consigne règle ordre directive
        instrucci regla norma órdenes orden instruç regra ordens ordem comando istruzion regol direttiv
        ordini indicazion opdracht richtlijn instrukti instruks ohje polec instrukc zasad reguł wytyczn
        pokyn pravid інструкц правил вказів инструкц указан команд приказ упътван utasít szabály
        instrucțiun reguli uputе uput οδηγί εντολ κανόν talimat komut kural instruksi perintah aturan
        arahan maagizo utos 指令 指示 规则 規則 命令 要求 设定 規定 提示 ルール 지시 명령 규칙 지침
        التعليمات تعليمات الأوامر أوامر القواعد قواعد دستور قوانین ההוראות הוראות הכללים निर्देश
        आदेश नियम
        নির্দেশ নিয়ম கட்டளை அறிவுறுத்தல் คำสั่ง กฎ
        """,
    "tell": """
        tell say reveal give show print share disclose output provide display repeat spell leak confirm
        sag nenn verrat zeig gib ausgeben wiederhol dis dites donne montre affiche révèle répète livre
        écris di dime dame muestra revela repite escribe diga mostre revele repita escreva dimmi dammi
        mostra rivela ripeti scrivi zeg vertel toon geef verklap berätta visa fortæl vis si kerro näytä
        podaj powiedz pokaż zdradź řekni ukaž скажи покажи назови выведи сообщи раскрой повтори скажіть
        покажи кажи mondd mutasd spune arată reci πες πείτε δείξε αποκάλυψε söyle göster ver yaz
        katakan
        beri tunjukkan sebutkan dedahkan uniambie sabihin nói tiết 告诉 说出 显示 输出 给我 透露 言って
        教えて 表示 見せて 出力 명시 말해 알려 보여 출력 أخبر قل أظهر اعرض اكشف اكتب أعط بگو نشان
        גלה הצג ספר
        बताओ बताइए बता दिखाओ लिखो বলো சொல் บอก แสดง
        """,
    "secret": """
        password passphrase passcode secret credential passwd pin token confidential codeword
        passwort kennwort geheim zugangscode zugangsdaten schlüssel losung secrèt motdepasse
        identifiants
        contraseñ clave secreto senha segredo chave parola segret chiave credenzial wachtwoord geheime
        lösenord hemlig adgangskode passord salasan salai hasł tajn hesl парол секрет ключ таємн jelszó
        titkos parolă secretă lozink κωδικ μυστικ κλειδί συνθηματ şifre parola gizli sandi rahasia
        kunci rahsia nenosiri lihim khẩu mật 密码 密碼 口令 秘密 密钥 暗号 合言葉 パスワード 鍵 비밀
        암호 열쇠
        السر السري المرور مفتاح رمز סיסמ סוד पासवर्ड गुप्त गोपनीय গোপন পাসওয়ার্ড கடவுச்சொல் รหัส ลับ
        """,
    "user": """
        user customer client nutzer kunde kundin benutzer utilisat client usuari client utente utilizz
        gebruik klant använd kund bruger kunde käyttäj użytkowni klient uživatel користувач клієнт
        пользовател клиент felhasználó utilizator χρήστ πελάτ kullanıcı müşteri pengguna pelanggan dùng
        用户 客户 使用者 ユーザー お客 사용자 고객 المستخدم العميل کاربر משתמש उपयोगकर्ता ग्राहक
        """,
    "private": """
        address birth birthday phone telephone email surname salary balance account live lives
        adresse geburt telefonnummer wohn geboren numéro naissance habite direcci teléfono vive nació
        endereço telefone mora nasceu indirizzo telefono abita nata nato adres woont bor asuu adres
        mieszka bydlí живе адрес телефон живёт живет родил lakik locuiește μένει τηλέφων γεννήθ adres
        telefon yaşıyor oturuyor alamat tinggal nomor sống 地址 电话 住 出生 邮箱 住所 電話 住んで 誕生
        주소 전화 사는 사나 살아 태어 يسكن عنوان هاتف ولد نشانی גר כתובת रहता पता फ़ोन जन्म
        """,
    "system": """
        system developer admin root sudo privileg override debug kernel operator
        entwickler administrator système développeur sistema desarrollador creador desenvolvedor
        sviluppatore ontwikkelaar utvecklare systeem programist systemow vývojář систем разработчик
        админ σύστημα διαχειριστ sistem geliştirici pengembang 系统 系統 开发者 管理员 システム 開発者
        管理者 시스템 개발자 관리자 النظام المطور المدير سیستم המערכת सिस्टम डेवलपर
        """,
    "hidden": """
        hidden unrestricted uncensored unfiltered restriction limitation filter versteckt verborgen
        caché cachée oculto oculta escondid nascost verborgen dold skjult ukryt skryt прихован скрыт
        rejtett ascuns κρυφ gizle tersembunyi 隐藏 限制 隠され 制限 숨겨 제한 المخفي مخفية قيود
        پنهان הנסתר
        छिप โซ่ ซ่อน
        """,
    "instead": """
        instead new now only just following stattdessen neue jetzt nur désormais nouvelle plutôt
        seulement ahora nueva solo sólo agora nova apenas adesso nuova soltanto nieuwe alleen ny nu
        teraz nowe tylko nyní теперь новая новые только вместо тепер νέα τώρα μόνο yeni şimdi yalnız
        sadece baru sekarang hanya 现在 新的 只 从现在 新しい 今から だけ 이제 새로운 만 الآن جديد
        فقط अब केवल
        """,
    "machine": """
        ai assistant chatbot bot model llm chatgpt gpt agent ki assistent modell modèle ia asistente
        modelo assistente modello assistente model asystent модел ассистент ии asistan 助手 模型
        人工智能
        アシスタント 모델 المساعد नमूना
        """,
    "reply": """
        reply response answer respond summary output antwort réponse répond respuesta respond resposta
        respond rispost antwoord svar vastaus odpowied odpověd ответ відповід απάντη cevap yanıt jawab
        回答 答复 回复 答え 回答 답 إجابة أجب उत्तर जवाब
        """,
}  # fmt: skip
_CONCEPTS = {stem: concept for concept, stems in _STEMS.items() for stem in stems.split()}
_LONGEST = max(map(len, _CONCEPTS))
_SHORTEST_BEGINNING = 4
"""Shorter stems are whole words: "say" is not "saying", and "si" no "sight"."""
_WITHOUT_SPACES = re.compile(r"[฀-๿぀-ヿ㐀-鿿가-힯]")
_SENTENCE = re.compile(r"[.!?。！？؟\n]+")
_QUOTED = re.compile(r"[\"“”„«»「」『』]")
_WORD = re.compile(r"[^\s!-&(-/:-@\[-`{-~«»“”„、。，！？：；「」『』…·،؟¿¡]+")


def concepts_of(text: str) -> set[str]:
    """The concepts in a text in lower case, and pairs of those in the same sentence."""
    found: set[str] = set()
    for place, run in enumerate(_QUOTED.split(text)):
        mark = "quoted " if place % 2 else ""
        for sentence in _SENTENCE.split(run):
            here = sorted({one for word in _WORD.findall(sentence) for one in _of_word(word)})
            found.update(f"{mark}{one}" for one in here)
            found.update(f"{mark}{one} {other}" for one, other in combinations(here, 2))
    return found


def _of_word(word: str) -> Iterator[str]:
    starts = range(len(word)) if _WITHOUT_SPACES.search(word) else range(1)
    for start in starts:
        for end in range(start + 1, min(len(word), start + _LONGEST) + 1):
            whole = end == len(word) or len(starts) > 1
            if (concept := _CONCEPTS.get(word[start:end])) and (
                whole or end >= _SHORTEST_BEGINNING
            ):
                yield concept
